import { Button, Group, Stack, Text } from "@mantine/core";
import {
  IconChevronLeft,
  IconDownload,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerStop,
} from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type Run, saveFile } from "../api/client";
import { getLiveRun, useLiveRun } from "../api/liveRuns";
import { stopRun } from "../api/queries";
import type { RunItem, RunState } from "../api/runState";
import { AgentName } from "../components/AgentName";
import { AnswerText } from "../components/AnswerText";
import { ConfirmButton } from "../components/Confirm";
import { DataGrid } from "../components/DataGrid";
import { Figures } from "../components/Figures";
import { Json } from "../components/Json";
import { PageLink } from "../components/links";
import { Page } from "../components/Page";
import { RunItems } from "../components/RunItems";
import { RunOutcome } from "../components/RunOutcome";
import { ErrorAlert, QueryView } from "../components/States";
import { Status } from "../components/Status";
import { formatNumber, formatSeconds, formatTime, getDuration } from "../format";

export function RunPage() {
  const { runId = "" } = useParams({ strict: false });
  const query = useQuery({
    queryKey: ["runs", runId],
    queryFn: () => api<Run>(`/api/runs/${encodeURIComponent(runId)}`),
  });
  if (query.data) return <RunView key={runId} run={query.data} error={query.error} />;
  return (
    <Page title={runId} back={<BackLink />}>
      <QueryView query={query}>{() => null}</QueryView>
    </Page>
  );
}

function BackLink() {
  const { t } = useTranslation();
  return (
    <PageLink to="/runs" size="sm" c="dimmed">
      <IconChevronLeft size={14} style={{ verticalAlign: "-2px" }} /> {t("nav.runs")}
    </PageLink>
  );
}

function RunView({ run, error }: { run: Run; error: unknown }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const runId = run.run_id;
  const state = useLiveRun(getLiveRun(runId));
  const isOpen = !run.ended_at;
  const isActive = isOpen && (state.phase === "running" || state.phase === "waiting");
  useEffect(() => {
    if (isOpen && state.connection === "closed") client.invalidateQueries({ queryKey: ["runs", runId] });
  }, [client, runId, isOpen, state.connection]);
  const exported = () =>
    JSON.stringify({ run, events: state.items, answer: state.answer, data: state.data }, null, 2);
  return (
    <Page
      title={run.task || runId}
      back={<BackLink />}
      actions={
        <>
          <Status value={isActive ? state.phase : run.status} />
          {isActive && state.connection !== "closed" && (
            <ConfirmButton
              color="red.8"
              leftSection={<IconPlayerStop size={14} />}
              label={t("run.stop")}
              title={t("run.stopTitle")}
              text={t("run.stopText")}
              action={() => stopRun(runId)}
            />
          )}
          <Button
            size="xs"
            variant="default"
            leftSection={<IconDownload size={14} />}
            onClick={() => saveFile(`run-${runId}.json`, exported(), "application/json")}
          >
            JSON
          </Button>
        </>
      }
    >
      <ErrorAlert error={error} />
      <RunFigures run={run} state={state} />
      <Stack mt="md" gap="md">
        <RunOutcome run={isActive ? state : { ...state, reason: state.reason || (run.reason ?? "") }} />
        {state.data && <AnswerText answer={state.data} />}
        {state.data?.sql && <Json value={state.data.sql} label={t("data.sql")} />}
        {state.data && state.data.rows.length > 0 && (
          <DataGrid columns={state.data.columns} rows={state.data.rows} label={t("data.result")} />
        )}
        <Replay items={state.items} isActive={isActive} />
      </Stack>
    </Page>
  );
}

function RunFigures({ run, state }: { run: Run; state: RunState }) {
  const { t } = useTranslation();
  const seconds = getDuration(run.started_at, run.ended_at);
  const figures: [string, React.ReactNode][] = [
    [t("runs.time"), formatTime(run.started_at)],
    [t("runs.duration"), seconds === null ? "–" : formatSeconds(seconds)],
    [t("chat.agent"), run.agent_id ? <AgentName key="agent" id={run.agent_id} /> : "–"],
    [t("chat.model"), run.model || "–"],
    [t("runs.turns"), run.turns ?? 0],
    [t("runs.calls"), run.tool_calls ?? 0],
    [t("runs.inOut"), `${formatNumber(run.input_tokens ?? 0)} / ${formatNumber(run.output_tokens ?? 0)}`],
    ...(!state.cost ? [] : [[t("agents.limit.cost"), state.cost.toFixed(4)] as [string, string]]),
    [
      t("nav.chat"),
      run.conversation_id ? (
        <PageLink
          key="chat"
          to="/chat/$conversationId"
          params={{ conversationId: run.conversation_id }}
          size="sm"
        >
          {t("runs.openChat")}
        </PageLink>
      ) : (
        "–"
      ),
    ],
  ];
  return <Figures figures={figures} />;
}

/** The timeline, which can be played step by step after the run; the URL holds the step. */
function Replay({ items, isActive }: { items: RunItem[]; isActive: boolean }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { step } = useSearch({ strict: false });
  const [isPlaying, setPlaying] = useState(false);
  const position = step === undefined ? items.length : Math.min(Math.max(0, Number(step) || 0), items.length);
  const go = useCallback(
    (value: number) =>
      navigate({
        to: ".",
        search: (previous: object) => ({
          ...previous,
          step: value < items.length ? String(value) : undefined,
        }),
        replace: true,
      }),
    [navigate, items.length],
  );
  useEffect(() => {
    if (!isPlaying) return;
    if (position >= items.length) return setPlaying(false);
    const timer = setTimeout(() => go(position + 1), 600);
    return () => clearTimeout(timer);
  }, [isPlaying, position, items.length, go]);
  const play = () => {
    if (position >= items.length) go(0);
    setPlaying(!isPlaying);
  };
  return (
    <>
      {!isActive && items.length > 1 && (
        <Group gap="xs" wrap="nowrap">
          <Button
            size="compact-xs"
            variant="default"
            onClick={play}
            leftSection={isPlaying ? <IconPlayerPause size={12} /> : <IconPlayerPlay size={12} />}
          >
            {t(isPlaying ? "runs.pause" : "runs.replay")}
          </Button>
          <input
            type="range"
            min={0}
            max={items.length}
            value={position}
            onChange={(event) => {
              setPlaying(false);
              go(Number(event.currentTarget.value));
            }}
            aria-label={t("runs.step")}
            className="replay"
          />
          <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
            {position} / {items.length}
          </Text>
        </Group>
      )}
      <Timeline items={isActive ? items : items.slice(0, position)} isActive={isActive} />
    </>
  );
}

const TURN_HEIGHT = 28;
const CALL_HEIGHT = 54; // a row that differs from its estimate is drawn twice

/** The items of a run on a line, of which only the visible ones are drawn. */
function Timeline({ items, isActive }: { items: RunItem[]; isActive: boolean }) {
  const { t } = useTranslation();
  const container = useRef<HTMLDivElement>(null);
  const longest = useMemo(
    () =>
      items.reduce((max, item) => Math.max(max, (item.type === "call" && item.result?.seconds) || 0), 0.001),
    [items],
  );
  const virtual = useVirtualizer({
    count: items.length,
    getScrollElement: () => container.current,
    estimateSize: (index) => (items[index]?.type === "turn" ? TURN_HEIGHT : CALL_HEIGHT),
    overscan: 6,
  });
  return (
    <section
      ref={container}
      aria-label={t("runs.timeline")}
      // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region must be reachable by keyboard
      tabIndex={0}
      style={{ maxHeight: "70vh", overflow: "auto" }}
    >
      <ol className="timeline" style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map((row) => {
          const item = items[row.index] as RunItem;
          return (
            <li
              key={row.key}
              ref={virtual.measureElement}
              data-index={row.index}
              style={{ transform: `translateY(${row.start}px)` }}
            >
              <TimelineItem item={item} isActive={isActive} longest={longest} />
            </li>
          );
        })}
      </ol>
    </section>
  );
}

type TimelineItemProps = { item: RunItem; isActive: boolean; longest: number };

const TimelineItem = memo(function TimelineItem({ item, isActive, longest }: TimelineItemProps) {
  const { t } = useTranslation();
  if (item.type === "turn") {
    return (
      <Group gap="xs">
        <Text size="xs" fw={600}>
          {t("runs.turn", { number: item.turn })}
        </Text>
        <Text size="xs" c="dimmed">
          {formatNumber(item.usage.input_tokens)} → {formatNumber(item.usage.output_tokens)} {t("tokens")} ·{" "}
          {t(`finish.${item.finish}`, item.finish)}
        </Text>
      </Group>
    );
  }
  const seconds = item.type === "call" ? item.result?.seconds : undefined;
  return (
    <Stack gap={4}>
      <RunItems items={[item]} isActive={isActive} />
      {seconds !== undefined && (
        <div
          className="timeline-bar"
          style={{
            width: `${(50 * seconds) / longest}%`,
            background:
              item.type === "call" && item.result?.failure
                ? "var(--mantine-color-red-6)"
                : "var(--mantine-color-teal-6)",
          }}
        />
      )}
    </Stack>
  );
});
