import { ActionIcon, Group, Stack, Text } from "@mantine/core";
import { IconThumbUpFilled, IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { api, type Page, type Run, withQuery } from "../api/client";
import { type DataSource, examplesQuery, getSourceHeaders, useScope } from "../api/queries";
import { formatTime } from "../format";
import { PageLink } from "./links";
import { ErrorAlert, QueryView } from "./States";
import { Status } from "./Status";

const MAX_QUESTIONS = 50;

/** The latest questions about a database, and those whose SQL was confirmed. */
export function QuestionHistory({ source, runId }: { source: DataSource; runId: string }) {
  const { t } = useTranslation();
  const agent = source.agent || "default";
  const query = useQuery({
    queryKey: ["runs", "data", agent],
    queryFn: () =>
      api<Page<Run>>(withQuery("/api/runs", { kind: "data", agent_id: agent, limit: MAX_QUESTIONS })),
    refetchInterval: 10_000,
  });
  return (
    <Stack gap="md">
      {useScope("tools:read") && <Examples source={source} />}
      <Stack gap={2} component="section" aria-label={t("data.history")}>
        <Text size="xs" c="dimmed" fw={600}>
          {t("data.history")}
        </Text>
        <QueryView query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <Text size="xs" c="dimmed">
                {t("data.noHistory")}
              </Text>
            ) : (
              items.map((run) => <Question key={run.run_id} run={run} isCurrent={run.run_id === runId} />)
            )
          }
        </QueryView>
      </Stack>
    </Stack>
  );
}

function Question({ run, isCurrent }: { run: Run; isCurrent: boolean }) {
  return (
    <PageLink
      to="/data"
      search={(previous: object) => ({ ...previous, run: run.run_id })}
      className="question"
      data-current={isCurrent || undefined}
      underline="never"
    >
      <Text size="sm" lineClamp={2}>
        {run.task}
      </Text>
      <Group gap="xs">
        <Text size="xs" c="dimmed">
          {formatTime(run.started_at)}
        </Text>
        {run.status !== "finished" && <Status value={run.status} />}
      </Group>
    </PageLink>
  );
}

function Examples({ source }: { source: DataSource }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const canDelete = useScope("tools:write");
  const query = useQuery(examplesQuery(source));
  const remove = useMutation({
    mutationFn: (id: string) =>
      api(withQuery(`/api/databases/examples/${id}`, { database: source.database }), {
        method: "DELETE",
        headers: getSourceHeaders(source),
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["examples"] }),
  });
  if (!query.data?.items.length) return <ErrorAlert error={query.error} />;
  return (
    <Stack gap={4} component="section" aria-label={t("data.examples")}>
      <Text size="xs" c="dimmed" fw={600}>
        {t("data.examples")}
      </Text>
      <ErrorAlert error={remove.error} />
      {query.data.items.map((example) => (
        <Group key={example.example_id} gap={6} wrap="nowrap" align="flex-start" px={8} title={example.sql}>
          <IconThumbUpFilled
            size={13}
            style={{ flexShrink: 0, marginTop: 3 }}
            color="var(--mantine-color-teal-6)"
          />
          <Text size="sm" flex={1} lineClamp={2}>
            {example.question}
          </Text>
          {canDelete && (
            <ActionIcon
              size="sm"
              aria-label={t("data.deleteExample", { question: example.question })}
              onClick={() => remove.mutate(example.example_id)}
            >
              <IconTrash size={14} />
            </ActionIcon>
          )}
        </Group>
      ))}
    </Stack>
  );
}
