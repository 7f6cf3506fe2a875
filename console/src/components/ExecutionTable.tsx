import { Badge, Drawer, Group, Stack, Text, UnstyledButton } from "@mantine/core";
import { IconActivity } from "@tabler/icons-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Execution } from "../api/client";
import { formatSeconds, formatTime, previewArguments } from "../format";
import { Json } from "./Json";
import { PageLink } from "./links";
import { type Column, PagedRecords } from "./RecordTable";
import { Empty } from "./States";

/** Recorded tool calls that match a filter of the API; a click shows one with its arguments and result. */
export function ExecutionTable({ filter }: { filter: Record<string, string> }) {
  const { t } = useTranslation();
  const [open, setOpen] = useState<Execution | null>(null);
  const columns: Column<Execution>[] = [
    {
      label: t("runs.tool"),
      cell: (execution) => (
        <UnstyledButton onClick={() => setOpen(execution)}>
          <Text size="sm" ff="monospace" c="var(--mantine-color-anchor)">
            {execution.name}
          </Text>
        </UnstyledButton>
      ),
    },
    {
      label: t("call.arguments"),
      cell: (execution) => (
        <Text size="xs" ff="monospace" c="dimmed" className="truncate">
          {previewArguments(execution.arguments)}
        </Text>
      ),
      kind: "wide",
    },
    { label: t("runs.outcome"), cell: (execution) => <Outcome execution={execution} /> },
    { label: t("runs.duration"), cell: ({ seconds }) => formatSeconds(seconds), kind: "duration" },
    { label: t("runs.time"), cell: ({ at }) => formatTime(at), kind: "time" },
  ];
  return (
    <>
      <PagedRecords
        queryKey={["executions", "list"]}
        path="/api/executions"
        filter={filter}
        columns={columns}
        getKey={({ execution_id }) => execution_id}
        empty={
          <Empty icon={<IconActivity size={32} stroke={1.3} />} title={t("runs.noCalls")}>
            {t("runs.noCallsText")}
          </Empty>
        }
      />
      <Drawer
        opened={open !== null}
        onClose={() => setOpen(null)}
        title={open?.name}
        position="right"
        size="lg"
      >
        {open && (
          <Stack gap="sm">
            <Group gap="xs">
              <Outcome execution={open} />
              <Text size="xs" c="dimmed">
                {formatSeconds(open.seconds)} · {formatTime(open.at)}
              </Text>
              {open.run_id && (
                <PageLink to="/runs/$runId" params={{ runId: open.run_id }} size="xs">
                  {t("runs.openRun")}
                </PageLink>
              )}
            </Group>
            {open.repairs.length > 0 && (
              <Text size="xs">
                {t("call.repairs")}: {open.repairs.join("; ")}
              </Text>
            )}
            <Json value={open.arguments} label={t("call.arguments")} />
            <Json value={open.result} label={t("call.result")} />
          </Stack>
        )}
      </Drawer>
    </>
  );
}

function Outcome({ execution }: { execution: Execution }) {
  const { t } = useTranslation();
  return (
    <Group gap={4} wrap="nowrap">
      <Badge size="sm" variant="light" color={execution.failure ? "red" : "teal"} tt="lowercase">
        {execution.failure ? t(`failure.${execution.failure}`, execution.failure) : t("call.succeeded")}
      </Badge>
      {execution.repairs.length > 0 && (
        <Badge size="sm" variant="light" color="yellow">
          {t("call.repaired")}
        </Badge>
      )}
    </Group>
  );
}
