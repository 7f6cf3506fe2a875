import { Group, Stack, Text } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type ToolSpec } from "../../api/client";
import { skillsQuery, toolsQuery } from "../../api/queries";
import { ActionButton } from "../ActionButton";
import { UnsavedChanges } from "../Confirm";
import { CodeEditor } from "../lazy";
import { ErrorAlert } from "../States";

/** The spec of a tool as JSON, which can be changed. */
export function ToolSpecEditor({ spec, path }: { spec: ToolSpec; path: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const stored = JSON.stringify(spec, null, 2);
  const [base, setBase] = useState(stored);
  const [saved, setSaved] = useState(stored);
  const [text, setText] = useState(stored);
  if (stored !== base) {
    // Saved here, by another page, or by the button that disables the tool: typed text stays.
    setBase(stored);
    setSaved(stored);
    if (text === saved) setText(stored);
  }
  const save = useMutation({
    mutationFn: async () => api(path, { method: "PUT", body: JSON.parse(text) }),
    onSuccess: () => {
      setSaved(text);
      return Promise.all([client.invalidateQueries(toolsQuery), client.invalidateQueries(skillsQuery)]);
    },
  });
  return (
    <Stack>
      <UnsavedChanges isChanged={!save.isPending && text !== saved} />
      <CodeEditor
        value={text}
        onChange={setText}
        language="json"
        label={t("tool.spec")}
        onSubmit={() => save.mutate()}
      />
      <ErrorAlert error={save.error} />
      <Group>
        <ActionButton size="xs" onClick={() => save.mutate()} loading={save.isPending}>
          {t("save")}
        </ActionButton>
        {save.isSuccess && text === saved && (
          <Text size="sm" c="dimmed" role="status">
            {t("saved")}
          </Text>
        )}
      </Group>
    </Stack>
  );
}
