import { Badge, Button, Group, Paper, Select, SimpleGrid, Stack, Tabs, Text } from "@mantine/core";
import { IconChevronLeft, IconPlayerPlay } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import {
  api,
  type CallResult,
  type Execution,
  type Failure,
  type Page as ListPage,
  type Skill,
  type ToolHealth,
  type ToolSpec,
  type ToolVersion,
  withQuery,
} from "../api/client";
import { toMedia } from "../api/media";
import { agentsQuery, healthQuery, skillsQuery, toolsQuery, useScope } from "../api/queries";
import { DeleteButton, UnsavedChanges } from "../components/Confirm";
import { ExecutionTable } from "../components/ExecutionTable";
import { Figures } from "../components/Figures";
import { Json } from "../components/Json";
import { CodeEditor, SchemaForm } from "../components/lazy";
import { PageLink } from "../components/links";
import { McpTools } from "../components/McpTools";
import { Media } from "../components/Media";
import { Page } from "../components/Page";
import { Empty, ErrorAlert, QueryView } from "../components/States";
import { CallCharts, PeriodSelect, usePeriod } from "../components/StatisticsCharts";
import { Status } from "../components/Status";
import { TabList } from "../components/TabList";
import { Versions } from "../components/Versions";
import { formatNumber, formatSeconds, formatTime } from "../format";
import { getHealthState, groupActions } from "./Tools";

export function ToolPage() {
  const { t } = useTranslation();
  const { toolId = "" } = useParams({ strict: false });
  const navigate = useNavigate();
  const path = `/api/tools/${encodeURIComponent(toolId)}`;
  const tool = useQuery({ queryKey: ["tools", toolId], queryFn: () => api<ToolSpec>(path) });
  const isServer = tool.data?.tool_type === "mcp_server";
  const search = useSearch({ strict: false });
  const canWrite = useScope("tools:write");
  const isAdmin = useScope("admin");
  const tabs = [
    ...(isServer ? ["server"] : []),
    ...(canWrite ? ["try"] : []),
    "description",
    ...(isAdmin ? ["failures", "calls"] : []),
    "agents",
    "spec",
    "versions",
  ];
  const { action = "" } = search;
  const tab = search.tab && tabs.includes(search.tab) ? search.tab : tabs[0];
  const health = useQuery({ ...healthQuery(toolId), enabled: tool.isSuccess });
  const skills = useQuery(skillsQuery);
  const actions = groupActions(skills.data ?? []).get(toolId) ?? [];
  const current = actions.find((skill) => skill.skill_id === action) ?? actions[0];
  const select = (values: { tab?: string; action?: string }) =>
    navigate({ to: ".", search: (previous: object) => ({ ...previous, ...values }), replace: true });
  return (
    <Page
      title={toolId}
      description={tool.data?.description || current?.description}
      back={
        <PageLink to="/tools" size="sm" c="dimmed">
          <IconChevronLeft size={14} style={{ verticalAlign: "-2px" }} /> {t("nav.tools")}
        </PageLink>
      }
      actions={
        <>
          {health.data && <Status value={getHealthState(health.data)} />}
          {tool.data && canWrite && <ToolActions spec={tool.data} />}
        </>
      }
    >
      <ErrorAlert error={tool.error} onRetry={() => tool.refetch()} />
      {health.data && <Health health={health.data} />}
      {tool.data && (
        <Tabs
          value={tab}
          onChange={(value) => select({ tab: value ?? undefined })}
          keepMounted={false}
          mt="md"
        >
          <TabList selected={tab}>
            {tabs.map((name) => (
              <Tabs.Tab key={name} value={name} data-tab={name}>
                {t(`tool.${name}`)}
              </Tabs.Tab>
            ))}
          </TabList>
          {actions.length > 1 && (tab === "try" || tab === "description") && (
            <Select
              mb="md"
              maw={360}
              label={t("tool.action")}
              data={actions.map((skill) => ({ value: skill.skill_id, label: skill.name }))}
              value={current?.skill_id ?? null}
              onChange={(value) => select({ action: value ?? undefined })}
              allowDeselect={false}
              searchable
            />
          )}
          <Tabs.Panel value="server">
            <McpTools path={path} health={health.data} />
          </Tabs.Panel>
          <Tabs.Panel value="try">
            {current ? (
              <TryIt key={current.skill_id} skill={current} toolId={toolId} />
            ) : (
              <Empty title={t("tool.unavailable")}>{t("tool.unavailableText")}</Empty>
            )}
          </Tabs.Panel>
          <Tabs.Panel value="description">{current && <Description skill={current} />}</Tabs.Panel>
          <Tabs.Panel value="failures">
            <Failures path={path} />
          </Tabs.Panel>
          <Tabs.Panel value="calls">
            <Calls toolId={toolId} />
          </Tabs.Panel>
          <Tabs.Panel value="agents">
            <Users toolId={toolId} />
          </Tabs.Panel>
          <Tabs.Panel value="spec">
            {canWrite ? (
              <SpecEditor spec={tool.data} path={path} />
            ) : (
              <Json value={tool.data} label={t("tool.spec")} />
            )}
          </Tabs.Panel>
          <Tabs.Panel value="versions">
            <ToolVersions spec={tool.data} path={path} />
          </Tabs.Panel>
        </Tabs>
      )}
    </Page>
  );
}

function ToolActions({ spec }: { spec: ToolSpec }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const path = `/api/tools/${encodeURIComponent(spec.tool_id)}`;
  const refresh = () =>
    Promise.all([
      client.invalidateQueries({ queryKey: ["tools"] }),
      client.invalidateQueries({ queryKey: ["skills"] }),
    ]);
  const toggle = useMutation({
    mutationFn: () => api(`${path}/${spec.enabled === false ? "enable" : "disable"}`, { method: "POST" }),
    onSuccess: refresh,
  });
  const remove = async () => {
    await api(path, { method: "DELETE" });
    await navigate({ to: "/tools" });
    await refresh();
  };
  return (
    <>
      <Button size="xs" variant="default" onClick={() => toggle.mutate()} loading={toggle.isPending}>
        {t(spec.enabled === false ? "tool.enable" : "tool.disable")}
      </Button>
      <DeleteButton
        title={t("tool.deleteTitle", { name: spec.tool_id })}
        text={t("tool.deleteText")}
        action={remove}
      />
      <ErrorAlert error={toggle.error} />
    </>
  );
}

function Health({ health }: { health: ToolHealth }) {
  const { t } = useTranslation();
  const failed = Object.values(health.failures).reduce((sum, count) => sum + count, 0);
  const figures: [string, string][] = [
    [t("tool.callCount"), formatNumber(health.calls)],
    [t("tool.failureCount"), formatNumber(failed)],
    [t("tool.meanTime"), health.calls ? formatSeconds(health.mean_seconds) : "–"],
  ];
  return (
    <Stack gap="xs">
      <Figures figures={figures} />
      {health.last_failure && <Figures figures={[[t("tool.lastFailure"), health.last_failure]]} />}
    </Stack>
  );
}

function TryIt({ skill, toolId }: { skill: Skill; toolId: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [values, setValues] = useState<Record<string, unknown>>({});
  const call = useMutation({
    mutationFn: () =>
      api<CallResult>(`/skills/${encodeURIComponent(skill.skill_id)}/run`, {
        method: "POST",
        body: { arguments: values },
      }),
    onSuccess: () =>
      Promise.all([
        client.invalidateQueries({ queryKey: ["executions"] }),
        client.invalidateQueries(healthQuery(toolId)),
      ]),
  });
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }} spacing="xl">
      <section aria-label={t("call.arguments")}>
        <SchemaForm
          schema={skill.parameters}
          value={values}
          onChange={setValues}
          onSubmit={() => call.mutate()}
          submitLabel={t("tool.run")}
          isBusy={call.isPending}
        />
      </section>
      <Stack gap="xs" aria-live="polite">
        <ErrorAlert error={call.error} />
        {call.data ? (
          <>
            <Group gap="xs">
              <Badge color={call.data.success ? "teal" : "red"} variant="light">
                {call.data.success
                  ? t("call.succeeded")
                  : t(`failure.${call.data.error?.kind}`, call.data.error?.kind ?? "")}
              </Badge>
              <Text size="xs" c="dimmed">
                {formatSeconds(call.data.meta.latency_ms / 1000)}
                {call.data.meta.attempts > 1 &&
                  ` · ${t("tool.attempts", { count: call.data.meta.attempts })}`}
                {call.data.meta.cached && ` · ${t("call.cached")}`}
              </Text>
            </Group>
            {call.data.media && <Media parts={toMedia(call.data.media)} />}
            <Json value={call.data.content} label={t("call.result")} />
          </>
        ) : (
          !call.error && (
            <Empty icon={<IconPlayerPlay size={28} stroke={1.3} />} title={t("tool.tryTitle")}>
              {t("tool.tryText")}
            </Empty>
          )
        )}
      </Stack>
    </SimpleGrid>
  );
}

function Description({ skill }: { skill: Skill }) {
  const { t } = useTranslation();
  return (
    <Stack>
      <Text size="sm" c="dimmed">
        {t("tool.descriptionText")}
      </Text>
      <Group gap="xs">
        <Text ff="monospace" fw={600}>
          {skill.name}
        </Text>
        <Badge size="sm" variant="default">
          {skill.version}
        </Badge>
      </Group>
      <Text size="sm" style={{ whiteSpace: "pre-wrap" }}>
        {skill.description}
      </Text>
      <Json value={skill.parameters} label={t("tool.schema")} />
    </Stack>
  );
}

function Failures({ path }: { path: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const query = useQuery({
    queryKey: ["failures", path],
    queryFn: () => api<ListPage<Failure>>(`${path}/failures`),
    refetchInterval: 5_000,
  });
  const pin = useMutation({
    mutationFn: (failure: Failure) =>
      api(`${path}/failures/${failure.failure_id}/pin`, { method: "PUT", body: { pinned: !failure.pinned } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["failures"] }),
  });
  const forget = useMutation({
    mutationFn: (id: string) => api(`${path}/failures/${id}`, { method: "DELETE" }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["failures"] }),
  });
  return (
    <QueryView query={query}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty title={t("tool.noFailures")}>{t("tool.failuresText")}</Empty>
        ) : (
          <Stack gap="xs">
            <Text size="sm" c="dimmed">
              {t("tool.failuresText")}
            </Text>
            <ErrorAlert error={pin.error ?? forget.error} />
            {items.map((failure) => (
              <Paper key={failure.failure_id} className="bordered" p="sm" bg="transparent">
                <Group justify="space-between" align="flex-start" gap="xs">
                  <Stack gap={4} flex="1 1 18rem">
                    <Group gap="xs">
                      <Badge size="sm" color="red" variant="light">
                        {t(`failure.${failure.kind}`, failure.kind)}
                      </Badge>
                      <Text size="xs" c="dimmed">
                        ×{failure.count} · {formatTime(failure.last_seen)}
                      </Text>
                    </Group>
                    <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                      {failure.message}
                    </Text>
                    {failure.correction && (
                      <Text size="xs" c="dimmed" fw={600}>
                        {t("tool.correction")}
                      </Text>
                    )}
                    {failure.correction && <Json value={failure.correction} label={t("tool.correction")} />}
                  </Stack>
                  <Group gap={4} wrap="nowrap">
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      title={t("tool.pinText")}
                      onClick={() => pin.mutate(failure)}
                    >
                      {t(failure.pinned ? "tool.unpin" : "tool.pin")}
                    </Button>
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      color="red"
                      onClick={() => forget.mutate(failure.failure_id)}
                    >
                      {t("delete")}
                    </Button>
                  </Group>
                </Group>
              </Paper>
            ))}
          </Stack>
        )
      }
    </QueryView>
  );
}

function Calls({ toolId }: { toolId: string }) {
  const { days } = usePeriod();
  const since = useMemo(() => new Date(Date.now() - days * 86_400_000).toISOString(), [days]);
  const filter = { tool_id: toolId, since };
  const query = useQuery({
    queryKey: ["executions", filter],
    queryFn: () => api<ListPage<Execution>>(withQuery("/api/executions", { ...filter, limit: 1000 })),
    refetchInterval: 5_000,
  });
  return (
    <Stack>
      <PeriodSelect />
      <QueryView query={query}>
        {({ items }) =>
          items.length > 0 && (
            <SimpleGrid cols={{ base: 1, md: 2 }}>
              <CallCharts calls={items} days={days} />
            </SimpleGrid>
          )
        }
      </QueryView>
      <ExecutionTable filter={filter} />
    </Stack>
  );
}

function Users({ toolId }: { toolId: string }) {
  const { t } = useTranslation();
  const query = useQuery(agentsQuery);
  return (
    <QueryView query={query}>
      {({ items }) => {
        const users = items.filter(({ agent }) => agent.tools?.some((binding) => binding.tool_id === toolId));
        if (users.length === 0) return <Empty title={t("tool.noAgents")}>{t("tool.noAgentsText")}</Empty>;
        return (
          <Stack gap="xs">
            {users.map(({ agent }) => (
              <PageLink key={agent.agent_id} to="/agents/$agentId" params={{ agentId: agent.agent_id }}>
                {agent.name || agent.agent_id}
              </PageLink>
            ))}
          </Stack>
        );
      }}
    </QueryView>
  );
}

function ToolVersions({ spec, path }: { spec: ToolSpec; path: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const query = useQuery({
    queryKey: ["tools", spec.tool_id, "versions"],
    queryFn: () => api<ListPage<ToolVersion>>(`${path}/versions`),
  });
  const canWrite = useScope("tools:write");
  const restore = useMutation({
    mutationFn: (earlier: ToolSpec) =>
      api(path, { method: "PUT", body: { ...earlier, enabled: spec.enabled } }),
    onSuccess: () =>
      Promise.all([client.invalidateQueries(toolsQuery), client.invalidateQueries(skillsQuery)]),
  });
  return (
    <QueryView query={query}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty title={t("tool.noVersions")}>{t("tool.noVersionsText")}</Empty>
        ) : (
          <Stack>
            <ErrorAlert error={restore.error} />
            <Versions
              versions={items.map(({ tool, version, saved_by, created_at }) => ({
                version,
                spec: tool,
                time: created_at,
                author: saved_by,
              }))}
              label={t("tool.restore")}
              describeAction={(version) => t("tool.restoreVersion", { version })}
              onSelect={canWrite ? restore.mutate : undefined}
              isBusy={restore.isPending}
            />
          </Stack>
        )
      }
    </QueryView>
  );
}

function SpecEditor({ spec, path }: { spec: ToolSpec; path: string }) {
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
        <Button size="xs" onClick={() => save.mutate()} loading={save.isPending}>
          {t("save")}
        </Button>
        {save.isSuccess && text === saved && (
          <Text size="sm" c="dimmed" role="status">
            {t("saved")}
          </Text>
        )}
      </Group>
    </Stack>
  );
}
