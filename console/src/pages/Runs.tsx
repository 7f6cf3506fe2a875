import { Group, Paper, Select, SimpleGrid, Stack, Tabs, Text } from "@mantine/core";
import { IconActivity, IconDownload, IconHandStop } from "@tabler/icons-react";
import { useMutation, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useTranslation } from "react-i18next";
import {
  api,
  type Execution,
  type Page as ListPage,
  type Run,
  request,
  saveFile,
  type Usage,
  withQuery,
} from "../api/client";
import { approvalsQuery, toolsQuery, useAgentOptions, useScope } from "../api/queries";
import { ActionButton } from "../components/ActionButton";
import { AgentName } from "../components/AgentName";
import { ApprovalCard } from "../components/ApprovalCard";
import { ExecutionTable } from "../components/ExecutionTable";
import { PageLink } from "../components/links";
import { Page } from "../components/Page";
import { type Column, PagedRecords } from "../components/RecordTable";
import { Empty, ErrorAlert, Forbidden, QueryView } from "../components/States";
import { CallCharts, PeriodSelect, RunCharts, usePeriod } from "../components/StatisticsCharts";
import { Status } from "../components/Status";
import { TabList } from "../components/TabList";
import { formatNumber, formatSeconds, formatTime, getDuration } from "../format";
import { clean } from "./Tools";

const STATUSES = ["running", "waiting", "finished", "failed", "cancelled"];
const FAILURES = [
  "any",
  "unknown_tool",
  "invalid_arguments",
  "refused",
  "denied",
  "rate_limited",
  "timeout",
  "unavailable",
  "failed",
  "cancelled",
];
const CHART_LIMIT = 1000;
const TABS = ["runs", "approvals", "calls", "charts"] as const;

export function RunsPage() {
  const { t } = useTranslation();
  const search = useSearch({ strict: false });
  const navigate = useNavigate();
  const canChat = useScope("chat");
  const tab = TABS.find((name) => name === search.tab) ?? (canChat ? "runs" : "approvals");
  const pending = useQuery(approvalsQuery).data?.items.length ?? 0;
  const isAdmin = useScope("admin");
  const tabs = TABS.filter((name) => (name === "runs" ? canChat : name === "approvals" || isAdmin));
  return (
    <Page title={t("nav.runs")} description={t("runs.description")}>
      <Tabs
        value={tab}
        onChange={(value) => navigate({ to: "/runs", search: { tab: value ?? undefined } })}
        keepMounted={false}
      >
        <TabList selected={tab}>
          {tabs.map((name) => (
            <Tabs.Tab key={name} value={name} data-tab={name}>
              {t(`runs.${name}`)} {name === "approvals" && pending > 0 && `(${pending})`}
            </Tabs.Tab>
          ))}
        </TabList>
        <Tabs.Panel value="runs">{canChat ? <RunList /> : <Forbidden scope="chat" />}</Tabs.Panel>
        <Tabs.Panel value="approvals">
          <Approvals />
        </Tabs.Panel>
        <Tabs.Panel value="calls">{isAdmin ? <CallList /> : <Forbidden scope="admin" />}</Tabs.Panel>
        <Tabs.Panel value="charts">{isAdmin ? <Charts /> : <Forbidden scope="admin" />}</Tabs.Panel>
      </Tabs>
    </Page>
  );
}

type FilterProps = { name: string; label: string; data: { value: string; label: string }[] };

/** A filter whose value is in the URL. */
function Filter({ name, label, data }: FilterProps) {
  const navigate = useNavigate();
  const search = useSearch({ strict: false }) as Record<string, string | undefined>;
  return (
    <Select
      flex="1 1 9rem"
      maw={200}
      size="xs"
      aria-label={label}
      placeholder={label}
      clearable
      searchable={data.length > 8}
      limit={100}
      data={data}
      value={search[name] ?? null}
      onChange={(value) =>
        navigate({
          to: "/runs",
          search: (previous) => ({ ...previous, ...clean({ [name]: value }) }),
          replace: true,
        })
      }
    />
  );
}

function RunList() {
  const { t } = useTranslation();
  const { status = "", agent = "" } = useSearch({ strict: false });
  const agents = useAgentOptions();
  const columns: Column<Run>[] = [
    {
      label: t("runs.task"),
      cell: (run) => (
        <PageLink
          to="/runs/$runId"
          params={{ runId: run.run_id }}
          size="sm"
          className="truncate"
          display="block"
        >
          {run.task || run.run_id}
        </PageLink>
      ),
      kind: "wide",
    },
    { label: t("runs.status"), cell: (run) => <Status value={run.status} /> },
    { label: t("chat.agent"), cell: (run) => <AgentName id={run.agent_id} /> },
    { label: t("runs.calls"), cell: (run) => run.tool_calls, kind: "number" },
    {
      label: t("tokens"),
      cell: (run) => formatNumber((run.input_tokens ?? 0) + (run.output_tokens ?? 0)),
      kind: "number",
    },
    {
      label: t("runs.duration"),
      cell: (run) => {
        const seconds = getDuration(run.started_at, run.ended_at);
        return seconds === null ? "–" : formatSeconds(seconds);
      },
      kind: "duration",
    },
    { label: t("runs.time"), cell: (run) => formatTime(run.started_at), kind: "time" },
  ];
  return (
    <Stack>
      <Group gap="xs">
        <Filter
          name="status"
          label={t("runs.status")}
          data={STATUSES.map((value) => ({ value, label: t(`status.${value}`) }))}
        />
        {agents.length > 0 && <Filter name="agent" label={t("chat.agent")} data={agents} />}
      </Group>
      <PagedRecords
        queryKey={["runs", "list"]}
        path="/api/runs"
        filter={{ status, agent_id: agent }}
        columns={columns}
        getKey={(run) => run.run_id}
        empty={
          <Empty icon={<IconActivity size={32} stroke={1.3} />} title={t("runs.none")}>
            {t("runs.noneText")}
          </Empty>
        }
      />
    </Stack>
  );
}

/** The calls that wait for a decision: of all keys for one that may decide, else of this key. */
function Approvals() {
  const { t } = useTranslation();
  const query = useQuery({ ...approvalsQuery, refetchInterval: 5_000 });
  const isAdmin = useScope("admin");
  return (
    <QueryView query={query}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty icon={<IconHandStop size={32} stroke={1.3} />} title={t("approval.none")}>
            {t("approval.noneText")}
          </Empty>
        ) : (
          <Stack>
            {items.map((item) => (
              <Paper key={item.approval_id} className="bordered" bg="transparent" pt="xs">
                <Text size="xs" c="dimmed" px="sm" mb={4}>
                  <AgentName id={item.agent_id} /> · {formatTime(item.created_at)}
                  {isAdmin && " · "}
                  {isAdmin && (
                    <PageLink to="/runs/$runId" params={{ runId: item.run_id }} size="xs">
                      {t("runs.openRun")}
                    </PageLink>
                  )}
                </Text>
                <ApprovalCard
                  approval={{ ...item, id: item.approval_id, reason: "" }}
                  tool={item.tool_id}
                  isActive
                />
              </Paper>
            ))}
          </Stack>
        )
      }
    </QueryView>
  );
}

function CallList() {
  const { t } = useTranslation();
  const { tool = "", agent = "", failure = "" } = useSearch({ strict: false });
  const tools = useQuery(toolsQuery);
  const agents = useAgentOptions();
  const filter = { tool_id: tool, agent_id: agent, failure };
  const download = useMutation({
    mutationFn: async () => {
      const response = await request(withQuery("/api/executions/export", { ...filter, format: "csv" }));
      saveFile("executions.csv", await response.blob(), "text/csv");
    },
  });
  return (
    <Stack>
      <Group gap="xs">
        <Filter
          name="tool"
          label={t("runs.tool")}
          data={(tools.data?.items ?? []).map(({ tool_id }) => ({ value: tool_id, label: tool_id }))}
        />
        <Filter name="agent" label={t("chat.agent")} data={agents} />
        <Filter
          name="failure"
          label={t("runs.failure")}
          data={FAILURES.map((value) => ({ value, label: t(`failure.${value}`) }))}
        />
        <ActionButton
          size="xs"
          variant="default"
          leftSection={<IconDownload size={14} />}
          onClick={() => download.mutate()}
          loading={download.isPending}
          ml="auto"
        >
          CSV
        </ActionButton>
      </Group>
      <ErrorAlert error={download.error} />
      <ExecutionTable filter={filter} />
    </Stack>
  );
}

function Charts() {
  const { t } = useTranslation();
  const { days } = usePeriod();
  const since = (start: number) => new Date(start - days * 86_400_000).toISOString();
  const query = useQuery({
    queryKey: ["statistics", days],
    queryFn: async () => {
      const start = since(Date.now());
      const [calls, runs, usage] = await Promise.all([
        api<ListPage<Execution>>(withQuery("/api/executions", { since: start, limit: CHART_LIMIT })),
        api<ListPage<Run>>(withQuery("/api/runs", { limit: CHART_LIMIT })),
        api<Usage>(withQuery("/api/usage", { since: start.slice(0, 10) })),
      ]);
      return { calls: calls.items, runs: runs.items.filter((run) => run.started_at >= start), usage };
    },
    refetchInterval: 5_000,
  });
  return (
    <Stack>
      <Group justify="space-between">
        <PeriodSelect />
        <Text size="xs" c="dimmed">
          {t("runs.chartLimit", { count: CHART_LIMIT })}
        </Text>
      </Group>
      <QueryView query={query}>
        {({ calls, runs, usage }) =>
          calls.length + runs.length === 0 ? (
            <Empty title={t("runs.none")}>{t("runs.noneText")}</Empty>
          ) : (
            <SimpleGrid cols={{ base: 1, md: 2 }}>
              <CallCharts calls={calls} days={days} />
              <RunCharts runs={runs} usage={usage} days={days} />
            </SimpleGrid>
          )
        }
      </QueryView>
    </Stack>
  );
}
