import {
  Accordion,
  Button,
  Grid,
  Group,
  Loader,
  Select,
  Stack,
  Tabs,
  Text,
  Textarea,
  TextInput,
  Title,
} from "@mantine/core";
import { IconDatabase, IconPlayerStop, IconSparkles } from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type Database, type Run } from "../api/client";
import { getLiveRun, LiveRun, type LiveState, useLiveRun } from "../api/liveRuns";
import { type DataSource, databasesQuery, getSourceHeaders, useScope, useStopRun } from "../api/queries";
import { ActionButton } from "../components/ActionButton";
import { AnswerText } from "../components/AnswerText";
import { isSendKey } from "../components/keys";
import { Page } from "../components/Page";
import { QueryResult } from "../components/QueryResult";
import { QuestionHistory } from "../components/QuestionHistory";
import { RunItems } from "../components/RunItems";
import { RunOutcome } from "../components/RunOutcome";
import { SchemaBrowser } from "../components/SchemaBrowser";
import { SemanticsBrowser } from "../components/SemanticsBrowser";
import { Empty, ErrorAlert, QueryView } from "../components/States";
import { formatNumber } from "../format";

function getKey({ agent_id, database }: Database): string {
  return agent_id ? `agent:${agent_id}` : `database:${database}`;
}

/** The database of the URL while none is named. */
const UNNAMED = "sqlite:///";

/** Return the source that the URL names, else the first one. */
function findSource(databases: Database[], agent: string, database: string): DataSource | null {
  if (database === UNNAMED) return null;
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
  const hasSemantics = items.some((item) => item.has_semantics && item.agent_id === source?.agent);
  const [started, setStarted] = useState<LiveRun | null>(null);
  const isStarted = started && (!runId || !started.state.runId || started.state.runId === runId);
  const run = isStarted ? started : runId ? getLiveRun(runId) : null;

  const ask = (question: string) => {
    if (!source) return;
    const next = new LiveRun();
    setStarted(next);
    next
      .start("/api/ask", {
        body: { question, database: source.database, detach: true },
        headers: getSourceHeaders(source),
      })
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
            <Grid.Col span={{ base: 12, md: 3.5 }}>
              {source && (
                <Sidebar
                  source={source}
                  hasSemantics={hasSemantics}
                  runId={runId || started?.state.runId || ""}
                />
              )}
            </Grid.Col>
          </Grid>
        )}
      </QueryView>
    </Page>
  );
}

function SourcePicker({ items, source }: { items: Database[]; source: DataSource | null }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const isAdmin = useScope("admin");
  const { database = "" } = useSearch({ strict: false });
  const item = items.find(
    (candidate) => candidate.agent_id === source?.agent && candidate.database === source.database,
  );
  const selected = item ? getKey(item) : source || database ? "other" : null;
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
              : { database: UNNAMED },
          );
        }}
        allowDeselect={false}
      />
      {selected === "other" && (
        <TextInput
          label={t("data.url")}
          flex="1 1 16rem"
          defaultValue={database}
          onKeyDown={(event) => event.key === "Enter" && event.currentTarget.blur()}
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
  const stop = useStopRun(state.runId);
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
            if (!isSendKey(event)) return;
            event.preventDefault();
            submit();
          }}
        />
        {isRunning ? (
          <ActionButton
            color="red.8"
            leftSection={<IconPlayerStop size={15} />}
            disabled={!state.runId}
            onClick={() => stop.mutate()}
            loading={stop.isPending}
          >
            {t("stop")}
          </ActionButton>
        ) : (
          <Button type="submit" disabled={isDisabled || !question.trim()}>
            {t("data.ask")}
          </Button>
        )}
      </Group>
      {isRunning && <ErrorAlert error={stop.error} />}
    </form>
  );
}

type SidebarProps = { source: DataSource; hasSemantics: boolean; runId: string };

/** What is known about a database: its tables, its semantic model, and earlier questions. */
function Sidebar({ source, hasSemantics, runId }: SidebarProps) {
  const { t } = useTranslation();
  const canRead = useScope("tools:read");
  return (
    <Tabs defaultValue={canRead ? "schema" : "history"} keepMounted={false}>
      <Tabs.List mb="sm">
        {canRead && <Tabs.Tab value="schema">{t("data.schema")}</Tabs.Tab>}
        {canRead && hasSemantics && <Tabs.Tab value="semantics">{t("data.semantics")}</Tabs.Tab>}
        <Tabs.Tab value="history">{t("data.questions")}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="schema">
        <SchemaBrowser source={source} />
      </Tabs.Panel>
      <Tabs.Panel value="semantics">
        <SemanticsBrowser source={source} />
      </Tabs.Panel>
      <Tabs.Panel value="history">
        <QuestionHistory source={source} runId={runId} />
      </Tabs.Panel>
    </Tabs>
  );
}

function Answer({ run, source }: { run: LiveRun; source: DataSource | null }) {
  const state = useLiveRun(run);
  const record = useQuery({
    queryKey: ["runs", state.runId, "record"],
    queryFn: () => api<Run>(`/api/runs/${encodeURIComponent(state.runId)}`),
    enabled: state.runId !== "",
    staleTime: Number.POSITIVE_INFINITY,
  });
  if (record.error && state.errorKind === "not_found") return <ErrorAlert error={record.error} />;
  return (
    <Stack component="article" aria-busy={state.phase === "running"}>
      {record.data && (
        <Title order={2} style={{ overflowWrap: "anywhere" }}>
          {record.data.task}
        </Title>
      )}
      <Steps state={state} />
      <RunOutcome run={state} />
      {state.data && <AnswerText answer={state.data} />}
      {state.data?.sql && (
        <QueryResult
          key={state.runId}
          answer={state.data}
          question={record.data?.task ?? ""}
          source={source}
        />
      )}
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
