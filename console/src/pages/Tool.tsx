import { Select, Stack, Tabs } from "@mantine/core";
import { IconChevronLeft } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import { api, type ToolHealth, type ToolSpec } from "../api/client";
import { agentsQuery, healthQuery, skillsQuery, useScope } from "../api/queries";
import { ActionButton } from "../components/ActionButton";
import { DeleteButton } from "../components/Confirm";
import { Figures } from "../components/Figures";
import { Json } from "../components/Json";
import { PageLink } from "../components/links";
import { Page } from "../components/Page";
import { Empty, ErrorAlert, QueryView } from "../components/States";
import { Status } from "../components/Status";
import { TabList } from "../components/TabList";
import { McpTools } from "../components/tool/McpTools";
import { ToolCalls } from "../components/tool/ToolCalls";
import { ToolDescription } from "../components/tool/ToolDescription";
import { ToolFailures } from "../components/tool/ToolFailures";
import { ToolSpecEditor } from "../components/tool/ToolSpecEditor";
import { ToolTrial } from "../components/tool/ToolTrial";
import { ToolVersions } from "../components/tool/ToolVersions";
import { formatNumber, formatSeconds } from "../format";
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
              <ToolTrial key={current.skill_id} skill={current} toolId={toolId} />
            ) : (
              <Empty title={t("tool.unavailable")}>{t("tool.unavailableText")}</Empty>
            )}
          </Tabs.Panel>
          <Tabs.Panel value="description">{current && <ToolDescription skill={current} />}</Tabs.Panel>
          <Tabs.Panel value="failures">
            <ToolFailures path={path} />
          </Tabs.Panel>
          <Tabs.Panel value="calls">
            <ToolCalls toolId={toolId} />
          </Tabs.Panel>
          <Tabs.Panel value="agents">
            <Users toolId={toolId} />
          </Tabs.Panel>
          <Tabs.Panel value="spec">
            {canWrite ? (
              <ToolSpecEditor spec={tool.data} path={path} />
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
      <ActionButton size="xs" variant="default" onClick={() => toggle.mutate()} loading={toggle.isPending}>
        {t(spec.enabled === false ? "tool.enable" : "tool.disable")}
      </ActionButton>
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
