import { Button, Group, Paper, Select, SimpleGrid, Stack, Table, Tabs, Text } from "@mantine/core";
import { IconActivity, IconDownload } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import {
  api,
  type Execution,
  type Page as ListPage,
  type Run,
  request,
  saveFile,
  withQuery,
} from "../api/client";
import { agentsQuery, sessionQuery, toolsQuery } from "../api/queries";
import { ExecutionTable } from "../components/ExecutionTable";
import { Chart } from "../components/lazy";
import { PageLink } from "../components/links";
import { Page } from "../components/Page";
import { Empty, ErrorAlert, QueryView } from "../components/States";
import { Status } from "../components/Status";
import { countByTime } from "../components/statistics";
import { formatNumber, formatSeconds, formatTime, getDuration } from "../format";
import { clean } from "./Tools";

const STATUSES = ["running", "waiting", "finished", "failed", "cancelled"];
const FAILURES = [
  "any",
  "invalid_arguments",
  "refused",
  "denied",
  "rate_limited",
  "timeout",
  "unavailable",
  "failed",
];
const PAGE_SIZE = 50;
const CHART_LIMIT = 1000;

export function RunsPage() {
  const { t } = useTranslation();
  const { tab = "runs" } = useSearch({ strict: false });
  const navigate = useNavigate();
  const isAdmin = useQuery(sessionQuery).data?.scopes.includes("admin") ?? false;
  return (
    <Page title={t("nav.runs")} description={t("runs.description")}>
      <Tabs
        value={tab}
        onChange={(value) => navigate({ to: "/runs", search: { tab: value ?? undefined } })}
        keepMounted={false}
      >
        <Tabs.List mb="md">
          <Tabs.Tab value="runs">{t("runs.runs")}</Tabs.Tab>
          {isAdmin && <Tabs.Tab value="calls">{t("runs.calls")}</Tabs.Tab>}
          {isAdmin && <Tabs.Tab value="charts">{t("runs.charts")}</Tabs.Tab>}
        </Tabs.List>
        <Tabs.Panel value="runs">
          <RunList />
        </Tabs.Panel>
        <Tabs.Panel value="calls">
          <CallList />
        </Tabs.Panel>
        <Tabs.Panel value="charts">
          <Charts />
        </Tabs.Panel>
      </Tabs>
    </Page>
  );
}

/** A filter whose value is in the URL. */
function Filter({
  name,
  label,
  data,
}: {
  name: string;
  label: string;
  data: { value: string; label: string }[];
}) {
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

function useAgentOptions() {
  const agents = useQuery(agentsQuery);
  return (agents.data?.items ?? []).map(({ agent }) => ({
    value: agent.agent_id,
    label: agent.name || agent.agent_id,
  }));
}

function RunList() {
  const { t } = useTranslation();
  const { status = "", agent = "" } = useSearch({ strict: false });
  const agents = useAgentOptions();
  const query = useInfiniteQuery({
    queryKey: ["runs", "list", status, agent],
    queryFn: ({ pageParam }) =>
      api<ListPage<Run>>(
        withQuery("/api/runs", { status, agent_id: agent, after: pageParam, limit: PAGE_SIZE }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next || undefined,
    refetchInterval: 5_000,
  });
  const runs = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack>
      <Group gap="xs">
        <Filter
          name="status"
          label={t("runs.status")}
          data={STATUSES.map((value) => ({ value, label: t(`status.${value}`) }))}
        />
        <Filter name="agent" label={t("chat.agent")} data={agents} />
      </Group>
      <ErrorAlert error={query.error} onRetry={() => query.refetch()} />
      {query.data && runs.length === 0 && (
        <Empty icon={<IconActivity size={32} stroke={1.3} />} title={t("runs.none")}>
          {t("runs.noneText")}
        </Empty>
      )}
      {runs.length > 0 && <RunTable runs={runs} />}
      {query.hasNextPage && (
        <Button
          variant="default"
          size="xs"
          w="fit-content"
          onClick={() => query.fetchNextPage()}
          loading={query.isFetchingNextPage}
        >
          {t("more")}
        </Button>
      )}
    </Stack>
  );
}

function RunTable({ runs }: { runs: Run[] }) {
  const { t } = useTranslation();
  return (
    <Table.ScrollContainer minWidth={720}>
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t("runs.task")}</Table.Th>
            <Table.Th>{t("runs.status")}</Table.Th>
            <Table.Th>{t("chat.agent")}</Table.Th>
            <Table.Th ta="right">{t("runs.calls")}</Table.Th>
            <Table.Th ta="right">{t("tokens")}</Table.Th>
            <Table.Th ta="right">{t("runs.duration")}</Table.Th>
            <Table.Th>{t("runs.time")}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {runs.map((run) => {
            const seconds = getDuration(run.started_at, run.ended_at);
            return (
              <Table.Tr key={run.run_id}>
                <Table.Td maw={380}>
                  <PageLink
                    to="/runs/$runId"
                    params={{ runId: run.run_id }}
                    size="sm"
                    className="truncate"
                    display="block"
                  >
                    {run.task || run.run_id}
                  </PageLink>
                </Table.Td>
                <Table.Td>
                  <Status value={run.status} />
                </Table.Td>
                <Table.Td>{run.agent_id}</Table.Td>
                <Table.Td ta="right">{run.tool_calls}</Table.Td>
                <Table.Td ta="right">
                  {formatNumber((run.input_tokens ?? 0) + (run.output_tokens ?? 0))}
                </Table.Td>
                <Table.Td ta="right" style={{ whiteSpace: "nowrap" }}>
                  {seconds === null ? "–" : formatSeconds(seconds)}
                </Table.Td>
                <Table.Td style={{ whiteSpace: "nowrap" }}>{formatTime(run.started_at)}</Table.Td>
              </Table.Tr>
            );
          })}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function CallList() {
  const { t } = useTranslation();
  const { tool = "", agent = "", failure = "" } = useSearch({ strict: false });
  const tools = useQuery(toolsQuery);
  const agents = useAgentOptions();
  const filter = { tool_id: tool, agent_id: agent, failure };
  const query = useQuery({
    queryKey: ["executions", filter],
    queryFn: () => api<ListPage<Execution>>(withQuery("/api/executions", { ...filter, limit: 200 })),
  });
  const download = async () => {
    const response = await request(withQuery("/api/executions/export", { ...filter, format: "csv" }));
    saveFile("executions.csv", await response.blob(), "text/csv");
  };
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
        <Button
          size="xs"
          variant="default"
          leftSection={<IconDownload size={14} />}
          onClick={download}
          ml="auto"
        >
          CSV
        </Button>
      </Group>
      <QueryView query={query}>{({ items }) => <ExecutionTable executions={items} />}</QueryView>
    </Stack>
  );
}

function Charts() {
  const { t } = useTranslation();
  const { days = "1" } = useSearch({ strict: false });
  const navigate = useNavigate();
  const query = useQuery({
    queryKey: ["statistics", days],
    queryFn: async () => {
      const since = new Date(Date.now() - Number(days) * 86_400_000).toISOString();
      const [calls, runs] = await Promise.all([
        api<ListPage<Execution>>(withQuery("/api/executions", { since, limit: CHART_LIMIT })),
        api<ListPage<Run>>(withQuery("/api/runs", { limit: CHART_LIMIT })),
      ]);
      return { calls: calls.items, runs: runs.items.filter((run) => run.started_at >= since) };
    },
  });
  return (
    <Stack>
      <Group justify="space-between">
        <Select
          size="xs"
          w={160}
          aria-label={t("runs.period")}
          data={["1", "7", "30"].map((value) => ({ value, label: t("runs.days", { count: Number(value) }) }))}
          value={days}
          onChange={(value) =>
            navigate({ to: "/runs", search: { tab: "charts", days: value ?? undefined }, replace: true })
          }
          allowDeselect={false}
        />
        <Text size="xs" c="dimmed">
          {t("runs.chartLimit", { count: CHART_LIMIT })}
        </Text>
      </Group>
      <QueryView query={query}>
        {({ calls, runs }) =>
          calls.length + runs.length === 0 ? (
            <Empty title={t("runs.none")}>{t("runs.noneText")}</Empty>
          ) : (
            <ChartGrid calls={calls} runs={runs} days={Number(days)} />
          )
        }
      </QueryView>
    </Stack>
  );
}

function ChartGrid({ calls, runs, days }: { calls: Execution[]; runs: Run[]; days: number }) {
  const { t } = useTranslation();
  const charts = useMemo(() => {
    const overTime = countByTime(days, calls, (call) => call.at);
    const runsOverTime = countByTime(days, runs, (run) => run.started_at);
    const sum = (items: Run[]) =>
      items.reduce((total, run) => total + (run.input_tokens ?? 0) + (run.output_tokens ?? 0), 0);
    const isFailed = (call: Execution) => call.failure !== null;
    return [
      {
        title: t("runs.calls"),
        labels: overTime.labels,
        series: [
          { label: t("runs.calls"), values: overTime.groups.map((group) => group.length) },
          {
            label: t("runs.failures"),
            values: overTime.groups.map((group) => group.filter(isFailed).length),
          },
        ],
      },
      {
        title: t("runs.latency"),
        labels: overTime.labels,
        series: [
          {
            label: t("runs.latency"),
            values: overTime.groups.map((group) =>
              group.length ? 1000 * mean(group.map((call) => call.seconds)) : null,
            ),
          },
        ],
      },
      {
        title: t("nav.runs"),
        labels: runsOverTime.labels,
        series: [{ label: t("nav.runs"), values: runsOverTime.groups.map((group) => group.length) }],
      },
      {
        title: t("tokens"),
        labels: runsOverTime.labels,
        series: [{ label: t("tokens"), values: runsOverTime.groups.map(sum) }],
      },
    ];
  }, [calls, runs, days, t]);
  return (
    <SimpleGrid cols={{ base: 1, md: 2 }}>
      {charts.map((chart) => (
        <Paper key={chart.title} className="bordered" p="sm" bg="transparent">
          <Text size="sm" fw={600} mb={4} className="capital">
            {chart.title}
          </Text>
          <Chart kind="bar" labels={chart.labels} series={chart.series} height={200} label={chart.title} />
        </Paper>
      ))}
    </SimpleGrid>
  );
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
