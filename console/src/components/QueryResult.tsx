import { Button, Group, SegmentedControl, Stack, Text, Tooltip, UnstyledButton } from "@mantine/core";
import { IconDownload, IconPlayerPlay, IconThumbUp, IconThumbUpFilled } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type Example, type QueryResult as QueryRows, saveFile } from "../api/client";
import { type DataSource, examplesQuery, getSourceHeaders, useScope } from "../api/queries";
import type { Candidate, DataAnswer } from "../api/runState";
import { ActionButton } from "./ActionButton";
import type { ChartKind } from "./Chart";
import { DataGrid, toCsv } from "./DataGrid";
import { Chart, CodeEditor } from "./lazy";
import { ErrorAlert } from "./States";
import { pickSeries } from "./series";

type Props = { answer: DataAnswer; question: string; source: DataSource | null };

/** The SQL of an answer, which can be changed and run again, with its rows, chart and downloads. */
export function QueryResult({ answer, question, source }: Props) {
  const { t } = useTranslation();
  const [sql, setSql] = useState(answer.sql);
  const canWrite = useScope("tools:write");
  const query = useMutation({
    mutationFn: () =>
      api<QueryRows>("/api/databases/query", {
        method: "POST",
        body: { sql, database: source?.database ?? "" },
        headers: getSourceHeaders(source),
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
          onSubmit={canWrite ? () => query.mutate() : undefined}
          minHeight="3rem"
        />
        <Group gap="xs">
          {canWrite && (
            <ActionButton
              size="xs"
              variant="light"
              leftSection={<IconPlayerPlay size={14} />}
              onClick={() => query.mutate()}
              loading={query.isPending}
            >
              {t("data.rerun")}
            </ActionButton>
          )}
          {canWrite && source && question && <ConfirmAnswer {...{ question, sql, source }} />}
          <Downloads columns={columns} rows={rows} />
          {truncated && (
            <Text size="xs" c="dimmed">
              {t("data.truncated")}
            </Text>
          )}
        </Group>
        <ErrorAlert error={query.error} />
        <Candidates candidates={answer.candidates} onChoose={setSql} />
      </Stack>
      <ResultChart columns={columns} rows={rows} suggested={query.data ? undefined : answer.chart?.type} />
      <DataGrid columns={columns} rows={rows} label={t("data.result")} />
    </>
  );
}

function Downloads({ columns, rows }: { columns: string[]; rows: unknown[][] }) {
  const saveParquet = async () => {
    const { toParquet } = await import("./parquet");
    saveFile("result.parquet", toParquet(columns, rows), "application/vnd.apache.parquet");
  };
  const saveCsv = () => saveFile("result.csv", `\ufeff${toCsv(columns, rows)}`, "text/csv");
  const formats = { CSV: saveCsv, Parquet: saveParquet };
  return Object.entries(formats).map(([name, save]) => (
    <Button key={name} size="xs" variant="default" leftSection={<IconDownload size={14} />} onClick={save}>
      {name}
    </Button>
  ));
}

/** Confirm that the SQL answers the question, so that later questions use both as an example. */
function ConfirmAnswer({ question, sql, source }: { question: string; sql: string; source: DataSource }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const examples = useQuery(examplesQuery(source));
  const confirmed = examples.data?.items.find((item) => item.question === question && item.sql === sql);
  const confirm = useMutation({
    mutationFn: () =>
      api<Example>("/api/databases/examples", {
        method: "POST",
        body: { question, sql, database: source.database },
        headers: getSourceHeaders(source),
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["examples"] }),
  });
  return (
    <>
      <Tooltip label={t("data.confirmText")} multiline maw={280}>
        <ActionButton
          size="xs"
          variant={confirmed ? "light" : "default"}
          leftSection={confirmed ? <IconThumbUpFilled size={14} /> : <IconThumbUp size={14} />}
          onClick={() => !confirmed && confirm.mutate()}
          loading={confirm.isPending}
          aria-disabled={confirmed !== undefined}
        >
          {t(confirmed ? "data.confirmed" : "data.confirm")}
        </ActionButton>
      </Tooltip>
      <ErrorAlert error={confirm.error} />
    </>
  );
}

type CandidatesProps = { candidates: Candidate[]; onChoose: (sql: string) => void };

/** The other queries that were considered, with what speaks against them; a click shows one in the editor. */
function Candidates({ candidates, onChoose }: CandidatesProps) {
  const { t } = useTranslation();
  const others = candidates.filter((candidate) => !candidate.is_chosen && candidate.sql);
  if (others.length === 0) return null;
  return (
    <Stack gap={2} component="section" aria-label={t("data.candidates")}>
      <Text size="xs" c="dimmed" fw={600}>
        {t("data.candidates")}
      </Text>
      {others.map((candidate, index) => (
        <UnstyledButton key={index} className="candidate" onClick={() => onChoose(candidate.sql)}>
          <Text size="xs" ff="monospace" className="truncate">
            {candidate.sql}
          </Text>
          <Text size="xs" c="dimmed">
            {candidate.reason}
          </Text>
          {candidate.diagnosis && (
            <Text size="xs" c="var(--mantine-color-orange-light-color)">
              {candidate.diagnosis}
            </Text>
          )}
        </UnstyledButton>
      ))}
    </Stack>
  );
}

type ResultChartProps = { columns: string[]; rows: unknown[][]; suggested?: string };

function ResultChart({ columns, rows, suggested }: ResultChartProps) {
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
      {kind !== "none" && <Chart kind={kind} {...chart} label={t("data.chart")} />}
    </Stack>
  );
}
