import {
  Alert,
  Badge,
  Button,
  Checkbox,
  Group,
  Select,
  SimpleGrid,
  Stack,
  Table,
  Tabs,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { IconChevronLeft } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type ImportOutcome } from "../api/client";
import { describeProblem } from "../api/errors";
import { useScope } from "../api/queries";
import { UnsavedChanges } from "../components/Confirm";
import { Json } from "../components/Json";
import { CodeEditor } from "../components/lazy";
import { PageLink } from "../components/links";
import { Page } from "../components/Page";
import { ErrorAlert, Forbidden } from "../components/States";
import { TabList } from "../components/TabList";

export function NewToolPage() {
  const { t } = useTranslation();
  const canWrite = useScope("tools:write");
  return (
    <Page
      title={t("tools.add")}
      back={
        <PageLink to="/tools" size="sm" c="dimmed">
          <IconChevronLeft size={14} style={{ verticalAlign: "-2px" }} /> {t("nav.tools")}
        </PageLink>
      }
    >
      {canWrite ? <Kinds /> : <Forbidden scope="tools:write" />}
    </Page>
  );
}

function Kinds() {
  const { t } = useTranslation();
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const kinds = ["http", "openapi", ...(useScope("admin") ? ["mcp"] : []), "function", "skill"];
  const kind = search.kind && kinds.includes(search.kind) ? search.kind : "http";
  return (
    <Tabs
      value={kind}
      onChange={(value) =>
        navigate({ to: "/tools/new", search: { kind: value ?? undefined }, replace: true })
      }
      keepMounted={false}
    >
      <TabList selected={kind}>
        {kinds.map((name) => (
          <Tabs.Tab key={name} value={name} data-tab={name}>
            {t(`newTool.${name}`)}
          </Tabs.Tab>
        ))}
      </TabList>
      <Tabs.Panel value="http">
        <HttpTool />
      </Tabs.Panel>
      <Tabs.Panel value="openapi">
        <OpenApiTools />
      </Tabs.Panel>
      <Tabs.Panel value="mcp">
        <McpServers />
      </Tabs.Panel>
      <Tabs.Panel value="function">
        <FunctionTool />
      </Tabs.Panel>
      <Tabs.Panel value="skill">
        <Skills />
      </Tabs.Panel>
    </Tabs>
  );
}

/** Refresh the lists of tools, and show a tool or the list. */
function useShowTools() {
  const client = useQueryClient();
  const navigate = useNavigate();
  return async (toolId = "") => {
    await Promise.all([
      client.invalidateQueries({ queryKey: ["tools"] }),
      client.invalidateQueries({ queryKey: ["skills"] }),
    ]);
    await (toolId ? navigate({ to: "/tools/$toolId", params: { toolId } }) : navigate({ to: "/tools" }));
  };
}

type Trial = { success: boolean; content: string; failure: string | null; seconds: number };

function HttpTool() {
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
        <Labelled text={t("newTool.parameters")}>
          <CodeEditor
            language="json"
            label={t("newTool.parameters")}
            value={schema}
            onChange={setSchema}
            minHeight="7rem"
          />
        </Labelled>
      </Stack>
      <Stack>
        <Labelled text={t("newTool.example")}>
          <CodeEditor
            language="json"
            label={t("newTool.example")}
            value={example}
            onChange={setExample}
            onSubmit={tryCall}
          />
        </Labelled>
        <Group>
          <Button variant="light" onClick={tryCall} loading={trial.isPending} disabled={isIncomplete}>
            {t("newTool.try")}
          </Button>
          <Button onClick={store} loading={save.isPending} disabled={isIncomplete}>
            {t("save")}
          </Button>
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

function Labelled({ text, children }: { text: string; children: ReactNode }) {
  return (
    <div>
      <Text size="sm" fw={600} mb={4}>
        {text}
      </Text>
      {children}
    </div>
  );
}

function OpenApiTools() {
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
        <Button
          variant="light"
          onClick={() => preview.mutate()}
          loading={preview.isPending}
          disabled={!source.trim()}
        >
          {t("newTool.preview")}
        </Button>
        <Button
          onClick={() => save.mutate()}
          loading={save.isPending}
          disabled={chosen.length === 0 || !preview.data}
        >
          {t("newTool.import", { count: chosen.length })}
        </Button>
      </Group>
      <ErrorAlert error={preview.error ?? save.error} />
      {preview.data && <Outcome outcome={preview.data} chosen={chosen} onChoose={setChosen} />}
    </Stack>
  );
}

function Outcome({
  outcome,
  chosen,
  onChoose,
}: {
  outcome: ImportOutcome;
  chosen?: string[];
  onChoose?: (ids: string[]) => void;
}) {
  const { t } = useTranslation();
  return (
    <Stack gap="xs">
      {outcome.wanted_variables.length > 0 && (
        <Alert color="orange" variant="light">
          {t("newTool.variables", { names: outcome.wanted_variables.join(", ") })}
        </Alert>
      )}
      <Table>
        <Table.Tbody>
          {outcome.accepted.map((tool) => (
            <Table.Tr key={tool.tool_id}>
              <Table.Td>
                {chosen && onChoose ? (
                  <Checkbox
                    label={tool.tool_id}
                    checked={chosen.includes(tool.tool_id)}
                    onChange={(event) =>
                      onChoose(
                        event.currentTarget.checked
                          ? [...chosen, tool.tool_id]
                          : chosen.filter((id) => id !== tool.tool_id),
                      )
                    }
                  />
                ) : (
                  tool.tool_id
                )}
              </Table.Td>
              <Table.Td>
                <Text size="xs" c="dimmed" lineClamp={2}>
                  {tool.description}
                </Text>
              </Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
      {outcome.left_out.map((item) => (
        <Alert key={item.where} color="orange" variant="light" title={item.where}>
          {describeProblem(item.why, t)}
        </Alert>
      ))}
    </Stack>
  );
}

const EXAMPLE_CONFIG =
  '{\n  "mcpServers": {\n    "notes": { "url": "https://notes.example.com/mcp" }\n  }\n}';

function McpServers() {
  const { t } = useTranslation();
  const [config, setConfig] = useState(EXAMPLE_CONFIG);
  return (
    <ImportForm
      createBody={() => ({ config: JSON.parse(config) })}
      path="mcp"
      isChanged={config !== EXAMPLE_CONFIG}
    >
      <Labelled text={t("newTool.mcpConfig")}>
        <CodeEditor
          language="json"
          label={t("newTool.mcpConfig")}
          value={config}
          onChange={setConfig}
          minHeight="7rem"
        />
      </Labelled>
      <Text size="xs" c="dimmed">
        {t("newTool.mcpText")}
      </Text>
    </ImportForm>
  );
}

function Skills() {
  const { t } = useTranslation();
  const [path, setPath] = useState("");
  return (
    <ImportForm
      createBody={() => ({ path })}
      path="skill"
      isChanged={path !== ""}
      isIncomplete={!path.trim()}
    >
      <TextInput
        label={t("newTool.folder")}
        description={t("newTool.folderText")}
        placeholder="skills/report"
        value={path}
        onChange={(event) => setPath(event.currentTarget.value)}
      />
    </ImportForm>
  );
}

function ImportForm({
  createBody,
  path,
  isChanged,
  isIncomplete = false,
  children,
}: {
  createBody: () => object;
  path: string;
  isChanged: boolean;
  isIncomplete?: boolean;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  const show = useShowTools();
  const load = useMutation({
    mutationFn: async () =>
      api<ImportOutcome>(`/api/tools/import/${path}`, { method: "POST", body: createBody() }),
    onSuccess: async ({ accepted, left_out }) => {
      if (left_out.length === 0) await show(accepted.length === 1 ? accepted[0]?.tool_id : "");
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    load.mutate();
  };
  return (
    <Stack maw={820} component="form" onSubmit={submit}>
      <UnsavedChanges isChanged={isChanged && !load.isPending && !load.isSuccess} />
      {children}
      <ErrorAlert error={load.error} />
      <Button type="submit" loading={load.isPending} disabled={isIncomplete} w="fit-content">
        {t("tools.add")}
      </Button>
      {load.data && <Outcome outcome={load.data} />}
    </Stack>
  );
}

function FunctionTool() {
  const { t } = useTranslation();
  const show = useShowTools();
  const [id, setId] = useState("");
  const [modulePath, setModulePath] = useState("");
  const [className, setClassName] = useState("");
  const [functionName, setFunctionName] = useState("");
  const save = useMutation({
    mutationFn: () =>
      api("/api/tools", {
        method: "POST",
        body: {
          tool_type: "function",
          tool_id: id.trim(),
          module_path: modulePath,
          class_name: className,
          function_name: functionName,
        },
      }),
    onSuccess: () => show(id.trim()),
  });
  return (
    <Stack
      maw={560}
      component="form"
      onSubmit={(event) => {
        event.preventDefault();
        save.mutate();
      }}
    >
      <UnsavedChanges isChanged={!save.isPending && id + modulePath + className + functionName !== ""} />
      <Text size="sm" c="dimmed">
        {t("newTool.functionText")}
      </Text>
      <TextInput
        label={t("newTool.id")}
        description={t("idText")}
        value={id}
        onChange={(event) => setId(event.currentTarget.value)}
      />
      <TextInput
        label={t("newTool.module")}
        placeholder="shop.tools"
        value={modulePath}
        onChange={(event) => setModulePath(event.currentTarget.value)}
      />
      <TextInput
        label={t("newTool.className")}
        value={className}
        onChange={(event) => setClassName(event.currentTarget.value)}
      />
      <TextInput
        label={t("newTool.functionName")}
        value={functionName}
        onChange={(event) => setFunctionName(event.currentTarget.value)}
      />
      <ErrorAlert error={save.error} />
      <Button
        type="submit"
        w="fit-content"
        loading={save.isPending}
        disabled={!id.trim() || !modulePath.trim()}
      >
        {t("save")}
      </Button>
    </Stack>
  );
}
