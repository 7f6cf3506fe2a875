import { Badge, Group, Select, SimpleGrid, Stack, Textarea, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api } from "../../api/client";
import { ActionButton } from "../ActionButton";
import { UnsavedChanges } from "../Confirm";
import { Json } from "../Json";
import { ErrorAlert } from "../States";
import { JsonField } from "./JsonField";
import { useShowTools } from "./useShowTools";

type Trial = { success: boolean; content: string; failure: string | null; seconds: number };

/** The form of a tool that calls an HTTP endpoint, which can be tried before it is saved. */
export function HttpToolForm() {
  const { t } = useTranslation();
  const show = useShowTools();
  const [id, setId] = useState("");
  const [description, setDescription] = useState("");
  const [method, setMethod] = useState("GET");
  const [url, setUrl] = useState("");
  const [token, setToken] = useState("");
  const [schema, setSchema] = useState('{\n  "type": "object",\n  "properties": {}\n}');
  const [example, setExample] = useState("{}");
  const createSpec = () => ({
    tool_type: "http",
    tool_id: id.trim(),
    description,
    endpoint: {
      url_template: url,
      method,
      ...(token && { auth: { type: "bearer", token: `env:${token}` } }),
    },
    parameters: JSON.parse(schema),
  });
  const trial = useMutation({
    mutationFn: async () =>
      api<Trial>("/api/tools/try", {
        method: "POST",
        body: { tool: createSpec(), arguments: JSON.parse(example) },
      }),
  });
  const save = useMutation({
    mutationFn: async () => api("/api/tools", { method: "POST", body: createSpec() }),
    onSuccess: () => show(id.trim()),
  });
  const tryCall = () => {
    save.reset();
    trial.mutate();
  };
  const store = () => {
    trial.reset();
    save.mutate();
  };
  const isIncomplete = !id.trim() || !url.trim();
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      <UnsavedChanges isChanged={!save.isPending && id + description + url !== ""} />
      <Stack>
        <TextInput
          label={t("newTool.id")}
          description={t("idText")}
          placeholder="stock"
          value={id}
          onChange={(event) => setId(event.currentTarget.value)}
        />
        <Textarea
          label={t("newTool.description")}
          description={t("newTool.descriptionText")}
          autosize
          minRows={2}
          value={description}
          onChange={(event) => setDescription(event.currentTarget.value)}
        />
        <Group align="flex-end" gap="xs" wrap="nowrap">
          <Select
            w={110}
            label={t("newTool.method")}
            data={["GET", "POST", "PUT", "PATCH", "DELETE"]}
            value={method}
            onChange={(value) => setMethod(value ?? "GET")}
            allowDeselect={false}
          />
          <TextInput
            flex={1}
            label="URL"
            placeholder="https://stock.example.com/items/{item}"
            value={url}
            onChange={(event) => setUrl(event.currentTarget.value)}
          />
        </Group>
        <TextInput
          label={t("newTool.token")}
          description={t("newTool.tokenText")}
          placeholder="STOCK_TOKEN"
          value={token}
          onChange={(event) => setToken(event.currentTarget.value)}
        />
        <JsonField label={t("newTool.parameters")} value={schema} onChange={setSchema} minHeight="7rem" />
      </Stack>
      <Stack>
        <JsonField label={t("newTool.example")} value={example} onChange={setExample} onSubmit={tryCall} />
        <Group>
          <ActionButton variant="light" onClick={tryCall} loading={trial.isPending} disabled={isIncomplete}>
            {t("newTool.try")}
          </ActionButton>
          <ActionButton onClick={store} loading={save.isPending} disabled={isIncomplete}>
            {t("save")}
          </ActionButton>
        </Group>
        <ErrorAlert error={trial.error ?? save.error} />
        {trial.data && (
          <Stack gap="xs" aria-live="polite">
            <Badge color={trial.data.success ? "teal" : "red"} variant="light">
              {trial.data.success
                ? t("call.succeeded")
                : t(`failure.${trial.data.failure}`, trial.data.failure ?? "")}
            </Badge>
            <Json value={trial.data.content} label={t("call.result")} />
          </Stack>
        )}
      </Stack>
    </SimpleGrid>
  );
}
