import { Button, Group, Stack } from "@mantine/core";
import {
  IconChevronLeft,
  IconDownload,
  IconPlayerPause,
  IconPlayerPlay,
  IconPlayerStop,
  IconRefresh,
} from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useParams } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { api, type Batch, request, saveFile } from "../api/client";
import { ActionButton } from "../components/ActionButton";
import { AgentName } from "../components/AgentName";
import { BatchProgress } from "../components/BatchProgress";
import { ConfirmButton } from "../components/Confirm";
import { Figures } from "../components/Figures";
import { PageLink } from "../components/links";
import { Page } from "../components/Page";
import { ErrorAlert, QueryView } from "../components/States";
import { Status } from "../components/Status";
import { formatNumber, formatTime } from "../format";

const TASK_STATUSES = ["queued", "submitted", "waiting", "finished", "failed", "cancelled"];

export function BatchPage() {
  const { t } = useTranslation();
  const { batchId = "" } = useParams({ strict: false });
  const query = useQuery({
    queryKey: ["batches", batchId],
    queryFn: () => api<Batch>(`/api/batches/${encodeURIComponent(batchId)}`),
    refetchInterval: ({ state }) => (state.data && state.data.ended < state.data.total ? 2_000 : false),
  });
  return (
    <Page
      title={t("batches.title", { id: batchId.slice(0, 8) })}
      back={
        <PageLink to="/batches" size="sm" c="dimmed">
          <IconChevronLeft size={14} style={{ verticalAlign: "-2px" }} /> {t("nav.batches")}
        </PageLink>
      }
      actions={query.data && <Status value={query.data.status} />}
    >
      <QueryView query={query}>
        {(batch) => (
          <Stack>
            <BatchProgress batch={batch} />
            <Actions batch={batch} />
            <BatchFigures batch={batch} />
          </Stack>
        )}
      </QueryView>
    </Page>
  );
}

type Action = "pause" | "resume" | "retry" | "cancel";
const ICONS: Record<Action, ReactNode> = {
  pause: <IconPlayerPause size={14} />,
  resume: <IconPlayerPlay size={14} />,
  retry: <IconRefresh size={14} />,
  cancel: <IconPlayerStop size={14} />,
};

/** Return what can be done with a batch in its state. */
function getActions({ status, counts }: Batch): Action[] {
  const actions: Action[] = [];
  if (status === "running") actions.push("pause", "cancel");
  if (status === "paused") actions.push("resume", "cancel");
  if ((counts.failed ?? 0) + (counts.cancelled ?? 0) > 0) actions.push("retry");
  return actions;
}

function Actions({ batch }: { batch: Batch }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const path = `/api/batches/${batch.batch_id}`;
  const change = useMutation({
    mutationFn: (action: Action) => api<Batch>(`${path}/${action}`, { method: "POST" }),
    onSuccess: (changed) => client.setQueryData(["batches", batch.batch_id], changed),
  });
  const download = useMutation({
    mutationFn: async () => {
      const results = await (await request(`${path}/results`)).blob();
      saveFile(`batch-${batch.batch_id}.jsonl`, results, "application/x-ndjson");
    },
  });
  return (
    <Stack gap="xs">
      <Group gap="xs">
        {getActions(batch).map((action) =>
          action === "cancel" ? (
            <ConfirmButton
              key={action}
              color="red.8"
              leftSection={ICONS[action]}
              label={t("batches.cancel")}
              title={t("batches.cancelTitle")}
              text={t("batches.cancelText", { count: batch.total - batch.ended })}
              action={() => change.mutateAsync("cancel")}
            />
          ) : (
            <Button
              key={action}
              size="xs"
              variant="light"
              leftSection={ICONS[action]}
              disabled={change.isPending}
              onClick={() => change.mutate(action)}
            >
              {t(`batches.${action}`)}
            </Button>
          ),
        )}
        <ActionButton
          size="xs"
          variant="default"
          leftSection={<IconDownload size={14} />}
          onClick={() => download.mutate()}
          loading={download.isPending}
          disabled={batch.ended === 0}
        >
          {t("batches.results")}
        </ActionButton>
      </Group>
      <ErrorAlert error={change.error ?? download.error} />
    </Stack>
  );
}

function BatchFigures({ batch }: { batch: Batch }) {
  const { t } = useTranslation();
  const figures: [string, ReactNode][] = [
    ...TASK_STATUSES.map((status): [string, ReactNode] => [
      t(`status.${status}`),
      formatNumber(batch.counts[status as keyof Batch["counts"]] ?? 0),
    ]),
    [t("chat.agent"), <AgentName key="agent" id={batch.agent_id} />],
    [t("batches.concurrency"), formatNumber(batch.concurrency)],
    [t("runs.inOut"), `${formatNumber(batch.input_tokens)} / ${formatNumber(batch.output_tokens)}`],
    ...(batch.cost ? [[t("limit.cost"), batch.cost.toFixed(4)] as [string, ReactNode]] : []), // 0 without a price
    [t("batches.created"), formatTime(batch.created_at)],
    [t("batches.endedAt"), formatTime(batch.ended_at) || "–"],
  ];
  return <Figures figures={figures} />;
}
