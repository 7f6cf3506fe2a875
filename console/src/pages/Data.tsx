import {
  Accordion,
  Alert,
  Button,
  Grid,
  Group,
  List,
  Loader,
  Paper,
  SegmentedControl,
  Select,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import {
  IconDatabase,
  IconDownload,
  IconPlayerPlay,
  IconPlayerStop,
  IconSparkles,
} from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, type ReactNode, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type Database, type QueryResult, saveFile } from "../api/client";
import { getLiveRun, LiveRun, type LiveState, useLiveRun } from "../api/liveRuns";
import { databasesQuery, sessionQuery } from "../api/queries";
import type { DataAnswer } from "../api/runState";
import type { ChartKind } from "../components/Chart";
import { DataGrid, toCsv } from "../components/DataGrid";
import { LazyMarkdown } from "../components/LazyMarkdown";
import { Chart, CodeEditor } from "../components/lazy";
import { Page } from "../components/Page";
import { RunItems } from "../components/RunItems";
import { type DataSource, SchemaBrowser } from "../components/SchemaBrowser";
import { Empty, ErrorAlert, QueryView } from "../components/States";
import { pickSeries } from "../components/series";
import { formatNumber } from "../format";

function getKey({ agent_id, database }: Database): string {
  return agent_id ? `agent:${agent_id}` : `database:${database}`;
}

/** Return the source that the URL names, else the first one. */
function findSource(databases: Database[], agent: string, database: string): DataSource | null {
  if (database && database !== "sample") return { agent: "", database };
  const sample = databases.find((item) => item.database);
  const found = agent ? databases.find((item) => item.agent_id === agent) : database ? sample : databases[0];
  return found ? { agent: found.agent_id, database: found.database } : null;
}

export function DataPage() {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const { agent = "", database = "", run: runId = "" } = useSearch({ strict: false });
  const databases = useQuery(databasesQuery);
  const items = databases.data?.items ?? [];
  const source = findSource(items, agent, database);
  const [started, setStarted] = useState<LiveRun | null>(null);
  const isStarted = started && (!runId || !started.state.runId || started.state.runId === runId);
  const run = isStarted ? started : runId ? getLiveRun(runId) : null;

  const ask = (question: string) => {
    if (!source) return;
    const next = new LiveRun();
    setStarted(next);
    const headers: Record<string, string> = source.agent ? { "X-Agent-ID": source.agent } : {};
    next
      .start("/api/ask", { body: { question, database: source.database }, headers })
      .then((id) => {
        const search = { agent: source.agent || undefined, database: source.database || undefined, run: id };
        navigate({ to: "/data", search, replace: true });
        client.invalidateQueries({ queryKey: ["runs"] });
      })
      .catch(() => undefined);
  };
  return (
    <Page title={t("nav.data")} description={t("data.description")}>
      <QueryView query={databases}>
        {() => (
          <Grid gap="xl">
            <Grid.Col span={{ base: 12, md: 8.5 }}>
              <Stack>
                <SourcePicker items={items} source={source} />
                <QuestionForm onAsk={ask} isDisabled={!source} run={run} />
                {run ? (
                  <Answer run={run} source={source} />
                ) : (
                  <Empty icon={<IconSparkles size={32} stroke={1.3} />} title={t("data.emptyTitle")}>
                    {t(source ? "data.emptyText" : "data.noDatabaseText")}
                  </Empty>
                )}
              </Stack>
            </Grid.Col>
            <Grid.Col span={{ base: 12, md: 3.5 }}>{source && <SchemaBrowser source={source} />}</Grid.Col>
          </Grid>
        )}
      </QueryView>
    </Page>
  );
}

function SourcePicker({ items, source }: { items: Database[]; source: DataSource | null }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const isAdmin = useQuery(sessionQuery).data?.scopes.includes("admin") ?? false;
  const item = items.find(
    (candidate) => candidate.agent_id === source?.agent && candidate.database === source.database,
  );
  const selected = item ? getKey(item) : source ? "other" : null;
  const choose = (search: { agent?: string; database?: string }) =>
    navigate({ to: "/data", search, replace: true });
  return (
    <Group gap="xs" align="flex-end">
      <Select
        label={t("data.database")}
        leftSection={<IconDatabase size={15} />}
        flex="1 1 14rem"
        data={[
          ...items.map((candidate) => ({ value: getKey(candidate), label: candidate.name })),
          ...(isAdmin ? [{ value: "other", label: t("data.other") }] : []),
        ]}
        value={selected}
        placeholder={t("data.noDatabase")}
        onChange={(value) => {
          const found = items.find((candidate) => getKey(candidate) === value);
          choose(
            found
              ? { agent: found.agent_id || undefined, database: found.database || undefined }
              : { database: "sqlite:///" },
          );
        }}
        allowDeselect={false}
      />
      {selected === "other" && (
        <TextInput
          label={t("data.url")}
          flex="1 1 16rem"
          defaultValue={source?.database}
          placeholder="sqlite:////path/to/file.sqlite"
          onBlur={(event) => choose({ database: event.currentTarget.value || undefined })}
        />
      )}
    </Group>
  );
}

type FormProps = { onAsk: (question: string) => void; isDisabled: boolean; run: LiveRun | null };
const NO_RUN = new LiveRun();

function QuestionForm({ onAsk, isDisabled, run }: FormProps) {
  const { t } = useTranslation();
  const [question, setQuestion] = useState("");
  const state = useLiveRun(run ?? NO_RUN);
  const isRunning = run !== null && state.phase === "running";
  const submit = (event?: FormEvent) => {
    event?.preventDefault();
    if (question.trim() && !isDisabled && !isRunning) onAsk(question.trim());
  };
  return (
    <form onSubmit={submit}>
      <Group gap="xs" align="flex-end" wrap="nowrap">
        <Textarea
          flex={1}
          label={t("data.question")}
          placeholder={t("data.placeholder")}
          autosize
          minRows={1}
          value={question}
          onChange={(event) => setQuestion(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
            event.preventDefault();
            submit();
          }}
        />
        {isRunning ? (
          <Button
            color="red.8"
            leftSection={<IconPlayerStop size={15} />}
            disabled={!state.runId}
            onClick={() => api(`/api/runs/${state.runId}/cancel`, { method: "POST" })}
          >
            {t("stop")}
          </Button>
        ) : (
          <Button type="submit" disabled={isDisabled || !question.trim()}>
            {t("data.ask")}
          </Button>
        )}
      </Group>
    </form>
  );
}

function Answer({ run, source }: { run: LiveRun; source: DataSource | null }) {
  const { t } = useTranslation();
  const state = useLiveRun(run);
  return (
    <Stack component="article" aria-busy={state.phase === "running"}>
      <Steps state={state} />
      {(state.phase === "failed" || state.phase === "cancelled") && (
        <Alert color="red" variant="light" role="alert" title={t("chat.failed")}>
          {state.error || t("run.lost")}
        </Alert>
      )}
      {state.data && (
        <Paper className="bordered" p="md" bg="transparent">
          {state.data.error && (
            <Alert color="red" variant="light" role="alert" title={t("data.noAnswer")}>
              {state.data.error}
            </Alert>
          )}
          {!(state.data.error && state.data.text.includes(state.data.error)) && (
            <LazyMarkdown text={state.data.text} />
          )}
          <Notes answer={state.data} />
        </Paper>
      )}
      {state.data?.sql && <Result key={state.runId} answer={state.data} source={source} />}
    </Stack>
  );
}

function Steps({ state }: { state: LiveState }) {
  const { t } = useTranslation();
  const isRunning = state.phase === "running";
  const steps = state.items.filter((item) => item.type !== "text");
  const tokens = formatNumber(state.usage.input_tokens + state.usage.output_tokens);
  return (
    <Accordion
      variant="contained"
      defaultValue={isRunning ? "steps" : null}
      key={isRunning ? "open" : "done"}
    >
      <Accordion.Item value="steps">
        <Accordion.Control
          icon={isRunning ? <Loader size={14} role="status" aria-label={t("call.running")} /> : undefined}
        >
          <Text size="sm">
            {t("data.steps", { count: steps.length })} · {tokens} {t("tokens")}
          </Text>
        </Accordion.Control>
        <Accordion.Panel>
          <Stack gap="xs">
            <RunItems items={steps} isActive={isRunning} />
          </Stack>
        </Accordion.Panel>
      </Accordion.Item>
    </Accordion>
  );
}

function Notes({ answer }: { answer: DataAnswer }) {
  const { t } = useTranslation();
  const notes: ReactNode[] = [...answer.assumptions, ...answer.corrections].map((note, index) => (
    <List.Item key={index}>{note}</List.Item>
  ));
  return (
    <>
      {answer.warnings.length > 0 && (
        <Alert color="orange" variant="light" mt="xs" p="xs" title={t("data.warnings")}>
          {answer.warnings.map((warning) => (
            <Text size="sm" key={warning}>
              {warning}
            </Text>
          ))}
        </Alert>
      )}
      {notes.length > 0 && (
        <List size="xs" c="dimmed" mt="xs">
          {notes}
        </List>
      )}
      {!answer.error && (
        <Text size="xs" c="dimmed" mt={6}>
          {t("data.confidence", { percent: Math.round(answer.confidence * 100) })}
        </Text>
      )}
    </>
  );
}

function Result({ answer, source }: { answer: DataAnswer; source: DataSource | null }) {
  const { t } = useTranslation();
  const [sql, setSql] = useState(answer.sql);
  const query = useMutation({
    mutationFn: () =>
      api<QueryResult>("/api/databases/query", {
        method: "POST",
        body: { sql, database: source?.database ?? "" },
        headers: source?.agent ? { "X-Agent-ID": source.agent } : {},
      }),
  });
  const { columns, rows, truncated } = query.data ?? answer;
  return (
    <>
      <Stack gap={6}>
        <CodeEditor
          value={sql}
          onChange={setSql}
          language="sql"
          label={t("data.sql")}
          onSubmit={() => query.mutate()}
          minHeight="3rem"
        />
        <Group gap="xs">
          <Button
            size="xs"
            variant="light"
            leftSection={<IconPlayerPlay size={14} />}
            onClick={() => query.mutate()}
            loading={query.isPending}
          >
            {t("data.rerun")}
          </Button>
          <Button
            size="xs"
            variant="default"
            leftSection={<IconDownload size={14} />}
            onClick={() => saveFile("result.csv", `\ufeff${toCsv(columns, rows)}`, "text/csv")}
          >
            CSV
          </Button>
          {truncated && (
            <Text size="xs" c="dimmed">
              {t("data.truncated")}
            </Text>
          )}
        </Group>
        <ErrorAlert error={query.error} />
      </Stack>
      <ResultChart columns={columns} rows={rows} suggested={query.data ? undefined : answer.chart?.type} />
      <DataGrid columns={columns} rows={rows} label={t("data.result")} />
    </>
  );
}

function ResultChart({
  columns,
  rows,
  suggested,
}: {
  columns: string[];
  rows: unknown[][];
  suggested?: string;
}) {
  const { t } = useTranslation();
  const [kind, setKind] = useState<ChartKind | "none">(suggested === "line" ? "line" : "bar");
  const chart = useMemo(() => pickSeries(columns, rows), [columns, rows]);
  if (!chart) return null;
  return (
    <Stack gap="xs" className="bordered" p="sm">
      <SegmentedControl
        size="xs"
        w="fit-content"
        aria-label={t("data.chart")}
        value={kind}
        onChange={(value) => setKind(value as ChartKind)}
        data={(["bar", "line", "points", "none"] as const).map((value) => ({
          value,
          label: t(`chart.${value}`),
        }))}
      />
      {kind !== "none" && (
        <Chart kind={kind} labels={chart.labels} series={chart.series} label={t("data.chart")} />
      )}
    </Stack>
  );
}
