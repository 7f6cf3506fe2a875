import {
  Alert,
  Button,
  Checkbox,
  Fieldset,
  Group,
  MultiSelect,
  NumberInput,
  Select,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { IconAlertTriangle, IconChevronLeft, IconDownload, IconMessage } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import {
  type Agent,
  type AgentSpec,
  type AgentWarning,
  api,
  type Page as ListPage,
  request,
  saveFile,
  withQuery,
} from "../api/client";
import { agentsQuery, sessionQuery, toolsQuery, useScope } from "../api/queries";
import { ActionButton } from "../components/ActionButton";
import { DeleteButton, UnsavedChanges } from "../components/Confirm";
import { ButtonLink, PageLink } from "../components/links";
import { ModelProfile } from "../components/ModelProfile";
import { Page } from "../components/Page";
import { ErrorAlert, QueryView } from "../components/States";
import { Versions } from "../components/Versions";

const LIMITS = ["turns", "tool_calls", "tokens", "seconds", "cost"] as const;

export function AgentPage() {
  const { agentId = "" } = useParams({ strict: false });
  const { t } = useTranslation();
  const path = `/api/agents/${encodeURIComponent(agentId)}`;
  const query = useQuery({ queryKey: ["agents", agentId], queryFn: () => api<Agent>(path) });
  const canChat = useScope("chat");
  const canWrite = useScope("tools:write");
  const download = useMutation({
    mutationFn: async () =>
      saveFile(`${agentId}.yaml`, await (await request(`${path}/export`)).blob(), "application/yaml"),
  });
  return (
    <Page
      title={query.data?.agent.name || agentId}
      description={query.data && t("agents.version", { id: agentId, version: query.data.version })}
      back={
        <PageLink to="/agents" size="sm" c="dimmed">
          <IconChevronLeft size={14} style={{ verticalAlign: "-2px" }} /> {t("nav.agents")}
        </PageLink>
      }
      actions={
        query.data && (
          <>
            {canChat && (
              <ButtonLink
                to="/chat"
                search={{ agent: agentId }}
                size="xs"
                variant="default"
                leftSection={<IconMessage size={14} />}
              >
                {t("nav.chat")}
              </ButtonLink>
            )}
            <Button
              size="xs"
              variant="default"
              leftSection={<IconDownload size={14} />}
              onClick={() => download.mutate()}
            >
              YAML
            </Button>
            {canWrite && <DeleteAgent path={path} name={agentId} />}
          </>
        )
      }
    >
      <ErrorAlert error={download.error} />
      <QueryView query={query}>
        {(agent) => (
          <Fieldset variant="unstyled" disabled={!canWrite}>
            <Editor key={agentId} agent={agent} path={path} />
          </Fieldset>
        )}
      </QueryView>
    </Page>
  );
}

function DeleteAgent({ path, name }: { path: string; name: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const remove = async () => {
    await api(path, { method: "DELETE" });
    await navigate({ to: "/agents" });
    await client.invalidateQueries({ queryKey: agentsQuery.queryKey });
  };
  return (
    <DeleteButton title={t("tool.deleteTitle", { name })} text={t("agents.deleteText")} action={remove} />
  );
}

function Editor({ agent, path }: { agent: Agent; path: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [base, setBase] = useState(agent);
  const [spec, setSpec] = useState<AgentSpec>(agent.agent);
  const isChanged = JSON.stringify(spec) !== JSON.stringify(base.agent);
  const load = (version: Agent) => {
    setBase(version);
    setSpec(version.agent);
  };
  // Another page may save a newer version: it replaces what is shown, but not what was typed.
  if (agent.version > base.version && !isChanged) load(agent);
  const models = useQuery(sessionQuery).data?.models ?? [];
  const canWrite = useScope("tools:write");
  const isAdmin = useScope("admin");
  const change = (values: Partial<AgentSpec>) => setSpec({ ...spec, ...values });
  const save = useMutation({
    mutationFn: () => api<Agent>(withQuery(path, { expected: base.version }), { method: "PUT", body: spec }),
    onSuccess: load,
    onSettled: () => client.invalidateQueries({ queryKey: agentsQuery.queryKey }),
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  return (
    <Stack component="form" onSubmit={submit} maw={880}>
      <Warnings warnings={agent.warnings ?? []} />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label={t("agents.name")}
          value={spec.name}
          onChange={(event) => change({ name: event.currentTarget.value })}
        />
        <Select
          label={t("chat.model")}
          data={[
            { value: "", label: t("agents.defaultModel") },
            ...models.map((name) => ({ value: name, label: name })),
          ]}
          value={spec.model}
          onChange={(value) => change({ model: value ?? "" })}
          allowDeselect={false}
        />
      </SimpleGrid>
      <ModelProfile model={spec.model ?? ""} />
      <TextInput
        label={t("agents.about")}
        value={spec.description}
        onChange={(event) => change({ description: event.currentTarget.value })}
      />
      <Textarea
        label={t("agents.instructions")}
        description={t("agents.instructionsText")}
        autosize
        minRows={4}
        maxRows={20}
        value={spec.instructions}
        onChange={(event) => change({ instructions: event.currentTarget.value })}
      />
      <ToolBindings spec={spec} onChange={change} />
      <Fieldset legend={t("agents.limits")}>
        <SimpleGrid cols={{ base: 2, sm: 5 }}>
          {LIMITS.map((name) => (
            <NumberInput
              key={name}
              label={t(`agents.limit.${name}`)}
              min={0}
              placeholder={t("agents.noLimit")}
              value={spec.limits[name] ?? ""}
              onChange={(value) =>
                change({ limits: { ...spec.limits, [name]: value === "" ? null : Number(value) } })
              }
            />
          ))}
        </SimpleGrid>
      </Fieldset>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <TextInput
          label={t("data.database")}
          description={t("agents.databaseText")}
          placeholder="sqlite:///shop.sqlite"
          disabled={!isAdmin}
          value={spec.database}
          onChange={(event) => change({ database: event.currentTarget.value })}
        />
        <TextInput
          label={t("agents.semantics")}
          description={t("agents.semanticsText")}
          placeholder="shop.yaml"
          disabled={!isAdmin}
          value={spec.semantics}
          onChange={(event) => change({ semantics: event.currentTarget.value })}
        />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <Select
          label={t("agents.afterUntrusted")}
          description={t("agents.afterUntrustedText")}
          data={(["allow", "approve", "refuse"] as const).map((value) => ({
            value,
            label: t(`agents.untrusted.${value}`),
          }))}
          value={spec.after_untrusted}
          onChange={(value) =>
            change({ after_untrusted: (value ?? "allow") as AgentSpec["after_untrusted"] })
          }
          allowDeselect={false}
        />
        <Select
          label={t("agents.learning")}
          description={t("agents.learningText")}
          data={(["own", "shared"] as const).map((value) => ({
            value,
            label: t(`agents.learningOptions.${value}`),
          }))}
          value={spec.learning}
          onChange={(value) => change({ learning: value === "own" ? "own" : "shared" })}
          allowDeselect={false}
        />
      </SimpleGrid>
      <Select
        label={t("agents.assisted")}
        description={t("agents.assistedText")}
        data={(["profile", "on", "off"] as const).map((value) => ({
          value,
          label: t(`agents.assistedOptions.${value}`),
        }))}
        value={spec.assisted == null ? "profile" : spec.assisted ? "on" : "off"}
        onChange={(value) => change({ assisted: value === "profile" ? null : value === "on" })}
        allowDeselect={false}
        maw={{ sm: "calc(50% - 0.5rem)" }}
      />
      <UnsavedChanges isChanged={isChanged} />
      <ErrorAlert error={save.error} />
      <Group>
        {canWrite && (
          <ActionButton type="submit" loading={save.isPending} disabled={!isChanged}>
            {t("save")}
          </ActionButton>
        )}
        {save.isSuccess && !isChanged && (
          <Text size="sm" c="dimmed" role="status">
            {t("saved")}
          </Text>
        )}
      </Group>
      <Fieldset legend={t("agents.versions")} mt="md">
        <AgentVersions path={path} current={agent.version} onLoad={canWrite ? setSpec : undefined} />
      </Fieldset>
    </Stack>
  );
}

function AgentVersions({
  path,
  current,
  onLoad,
}: {
  path: string;
  current: number;
  onLoad: ((spec: AgentSpec) => void) | undefined;
}) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ["agents", path, "versions", current],
    queryFn: () => api<ListPage<Agent>>(`${path}/versions`),
  });
  return (
    <QueryView query={query}>
      {({ items }) => (
        <Versions
          versions={items.map(({ agent, version, updated_at }) => ({
            version,
            spec: agent,
            time: updated_at ?? "",
          }))}
          label={t("agents.load")}
          describeAction={(version) => t("agents.loadVersion", { version })}
          onSelect={onLoad}
        />
      )}
    </QueryView>
  );
}

/** The warnings of the stored agent. A tool that does not exist is shown where it is chosen. */
function Warnings({ warnings }: { warnings: AgentWarning[] }) {
  const { t } = useTranslation();
  const tools = useQuery(toolsQuery).data?.items.map((tool) => tool.tool_id) ?? [];
  return warnings
    .filter(({ id, parameters }) => id !== "unusable_tool" || tools.includes(parameters.tool ?? ""))
    .map(({ id, message, parameters }) => (
      <Alert key={message} color="orange" variant="light" icon={<IconAlertTriangle size={18} />}>
        {t(`agents.warning.${id}`, { ...parameters, field: t("agents.afterUntrusted") })}
      </Alert>
    ));
}

type BindingProps = { spec: AgentSpec; onChange: (values: Partial<AgentSpec>) => void };

function ToolBindings({ spec, onChange }: BindingProps) {
  const { t } = useTranslation();
  const tools = useQuery(toolsQuery);
  const known = tools.data?.items.map((tool) => tool.tool_id) ?? [];
  const bound = spec.tools.map((binding) => binding.tool_id);
  const bind = (ids: string[]) =>
    onChange({
      tools: ids.map(
        (id) =>
          spec.tools.find((binding) => binding.tool_id === id) ?? { tool_id: id, enabled: true, config: {} },
      ),
      needs_approval: spec.needs_approval.filter((id) => ids.includes(id)),
    });
  const setApproval = (id: string, isNeeded: boolean) =>
    onChange({
      needs_approval: isNeeded
        ? [...spec.needs_approval, id]
        : spec.needs_approval.filter((other) => other !== id),
    });
  const missing = tools.data ? bound.filter((id) => !known.includes(id)) : [];
  return (
    <Fieldset legend={t("nav.tools")}>
      <Stack gap="sm">
        <MultiSelect
          label={t("agents.tools")}
          data={[...new Set([...known, ...bound])]}
          value={bound}
          onChange={bind}
          searchable
          limit={100}
          clearable
          hidePickedOptions
        />
        {missing.length > 0 && (
          <Alert color="orange" variant="light">
            {t("agents.missingTools", { tools: missing.join(", ") })}
          </Alert>
        )}
        {bound.length > 0 && (
          <div>
            <Text size="sm" fw={500}>
              {t("agents.approval")}
            </Text>
            <Text size="xs" c="dimmed" mb={6}>
              {t("agents.approvalText")}
            </Text>
            <Group gap="md">
              {bound.map((id) => (
                <Checkbox
                  key={id}
                  size="xs"
                  label={id}
                  checked={spec.needs_approval.includes(id)}
                  onChange={(event) => setApproval(id, event.currentTarget.checked)}
                />
              ))}
            </Group>
          </div>
        )}
      </Stack>
    </Fieldset>
  );
}
