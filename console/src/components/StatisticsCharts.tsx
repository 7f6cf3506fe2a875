import { Paper, Select, Text } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Execution, Run, Usage } from "../api/client";
import type { Series } from "./Chart";
import { Chart } from "./lazy";
import { countByTime } from "./statistics";

const PERIODS = ["1", "7", "30"];

/** Return the period of the charts in days, which the URL holds. */
export function usePeriod(): { days: number } {
  const { days = "" } = useSearch({ strict: false });
  return { days: Number(PERIODS.includes(days) ? days : PERIODS[0]) };
}

export function PeriodSelect() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { days } = usePeriod();
  return (
    <Select
      size="xs"
      w={160}
      aria-label={t("runs.period")}
      data={PERIODS.map((value) => ({ value, label: t("runs.days", { count: Number(value) }) }))}
      value={String(days)}
      onChange={(value) =>
        navigate({
          to: ".",
          search: (previous: object) => ({ ...previous, days: value ?? undefined }),
          replace: true,
        })
      }
      allowDeselect={false}
    />
  );
}

/** Calls with their failures, and the mean time of a call, over time. */
export function CallCharts({ calls, days }: { calls: Execution[]; days: number }) {
  const { t } = useTranslation();
  const { labels, counts, latency } = useMemo(() => {
    const { labels, groups } = countByTime(days, calls, (call) => call.at);
    const failures = groups.map((group) => group.filter((call) => call.failure !== null).length);
    return {
      labels,
      counts: [
        { label: t("runs.calls"), values: groups.map((group) => group.length) },
        { label: t("runs.failures"), values: failures },
      ],
      latency: [
        {
          label: t("runs.latency"),
          values: groups.map((group) =>
            group.length ? 1000 * mean(group.map((call) => call.seconds)) : null,
          ),
        },
      ],
    };
  }, [calls, days, t]);
  return (
    <>
      <TimeChart title={t("runs.calls")} labels={labels} series={counts} />
      <TimeChart title={t("runs.latency")} labels={labels} series={latency} />
    </>
  );
}

/** Runs and their tokens over time, and the cost by day where prices are known. */
export function RunCharts({ runs, usage, days }: { runs: Run[]; usage: Usage; days: number }) {
  const { t } = useTranslation();
  const { labels, counts, tokens } = useMemo(() => {
    const { labels, groups } = countByTime(days, runs, (run) => run.started_at);
    const sum = (items: Run[]) =>
      items.reduce((total, run) => total + (run.input_tokens ?? 0) + (run.output_tokens ?? 0), 0);
    return {
      labels,
      counts: [{ label: t("nav.runs"), values: groups.map((group) => group.length) }],
      tokens: [{ label: t("tokens"), values: groups.map(sum) }],
    };
  }, [runs, days, t]);
  const costs = useMemo(() => {
    const { labels, groups } = countByTime(Math.max(2, days), usage.days, ({ day }) => `${day}T12:00:00`);
    const values = groups.map((group) => group.reduce((sum, { cost }) => sum + cost, 0));
    return { labels, series: [{ label: t("runs.cost"), values }] };
  }, [usage, days, t]);
  return (
    <>
      <TimeChart title={t("nav.runs")} labels={labels} series={counts} />
      <TimeChart title={t("tokens")} labels={labels} series={tokens} />
      {usage.cost > 0 && <TimeChart title={t("runs.cost")} {...costs} />}
    </>
  );
}

function TimeChart({ title, labels, series }: { title: string; labels: string[]; series: Series[] }) {
  return (
    <Paper className="bordered" p="sm" bg="transparent">
      <Text size="sm" fw={600} mb={4} className="capital">
        {title}
      </Text>
      <Chart kind="bar" labels={labels} series={series} height={200} label={title} />
    </Paper>
  );
}

function mean(values: number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
