import { Group, Stack, Textarea, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type ImportOutcome } from "../../api/client";
import { ActionButton } from "../ActionButton";
import { UnsavedChanges } from "../Confirm";
import { ErrorAlert } from "../States";
import { ImportedTools } from "./ImportedTools";
import { useShowTools } from "./useShowTools";

/** Choose the operations of an OpenAPI document that become tools. */
export function OpenApiImport() {
  const { t } = useTranslation();
  const show = useShowTools();
  const [source, setSource] = useState("");
  const [prefix, setPrefix] = useState("");
  const [chosen, setChosen] = useState<string[]>([]);
  const body = () => ({
    ...(/^https?:\/\/\S+$/.test(source.trim()) ? { url: source.trim() } : { text: source }),
    prefix,
  });
  const preview = useMutation({
    mutationFn: () =>
      api<ImportOutcome>("/api/tools/import/openapi", { method: "POST", body: { ...body(), dry_run: true } }),
    onSuccess: (outcome) => setChosen(outcome.accepted.map((tool) => tool.tool_id)),
  });
  // Each chosen tool is stored from the preview, so that what was shown is what is stored.
  const save = useMutation({
    mutationFn: async () => {
      for (const tool of preview.data?.accepted ?? []) {
        if (!chosen.includes(tool.tool_id)) continue;
        await api("/api/tools", { method: "POST", body: tool });
        setChosen((ids) => ids.filter((id) => id !== tool.tool_id)); // a later attempt goes on after it
      }
    },
    onSuccess: () => show(),
  });
  return (
    <Stack maw={820}>
      <UnsavedChanges isChanged={!save.isPending && source + prefix !== ""} />
      <Textarea
        label={t("newTool.document")}
        description={t("newTool.documentText")}
        autosize
        minRows={4}
        maxRows={14}
        value={source}
        onChange={(event) => setSource(event.currentTarget.value)}
      />
      <TextInput
        maw={240}
        label={t("newTool.prefix")}
        value={prefix}
        onChange={(event) => setPrefix(event.currentTarget.value)}
      />
      <Group>
        <ActionButton
          variant="light"
          onClick={() => preview.mutate()}
          loading={preview.isPending}
          disabled={!source.trim()}
        >
          {t("newTool.preview")}
        </ActionButton>
        <ActionButton
          onClick={() => save.mutate()}
          loading={save.isPending}
          disabled={chosen.length === 0 || !preview.data}
        >
          {t("newTool.import", { count: chosen.length })}
        </ActionButton>
      </Group>
      <ErrorAlert error={preview.error ?? save.error} />
      {preview.data && <ImportedTools outcome={preview.data} chosen={chosen} onChoose={setChosen} />}
    </Stack>
  );
}
