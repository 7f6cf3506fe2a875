import { Badge, Button, Group, Paper, Stack, Text } from "@mantine/core";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { api, type Failure, type Page as ListPage } from "../../api/client";
import { formatTime } from "../../format";
import { Json } from "../Json";
import { Empty, ErrorAlert, QueryView } from "../States";

/** The failures of a tool that are stored for later calls, which can be pinned and deleted. */
export function ToolFailures({ path }: { path: string }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const query = useQuery({
    queryKey: ["failures", path],
    queryFn: () => api<ListPage<Failure>>(`${path}/failures`),
    refetchInterval: 5_000,
  });
  const pin = useMutation({
    mutationFn: (failure: Failure) =>
      api(`${path}/failures/${failure.failure_id}/pin`, { method: "PUT", body: { pinned: !failure.pinned } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["failures"] }),
  });
  const forget = useMutation({
    mutationFn: (id: string) => api(`${path}/failures/${id}`, { method: "DELETE" }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["failures"] }),
  });
  return (
    <QueryView query={query}>
      {({ items }) =>
        items.length === 0 ? (
          <Empty title={t("tool.noFailures")}>{t("tool.failuresText")}</Empty>
        ) : (
          <Stack gap="xs">
            <Text size="sm" c="dimmed">
              {t("tool.failuresText")}
            </Text>
            <ErrorAlert error={pin.error ?? forget.error} />
            {items.map((failure) => (
              <Paper key={failure.failure_id} className="bordered" p="sm" bg="transparent">
                <Group justify="space-between" align="flex-start" gap="xs">
                  <Stack gap={4} flex="1 1 18rem">
                    <Group gap="xs">
                      <Badge size="sm" color="red" variant="light">
                        {t(`failure.${failure.kind}`, failure.kind)}
                      </Badge>
                      <Text size="xs" c="dimmed">
                        ×{failure.count} · {formatTime(failure.last_seen)}
                      </Text>
                    </Group>
                    <Text size="sm" style={{ overflowWrap: "anywhere" }}>
                      {failure.message}
                    </Text>
                    {failure.correction && (
                      <Text size="xs" c="dimmed" fw={600}>
                        {t("tool.correction")}
                      </Text>
                    )}
                    {failure.correction && <Json value={failure.correction} label={t("tool.correction")} />}
                  </Stack>
                  <Group gap={4} wrap="nowrap">
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      title={t("tool.pinText")}
                      onClick={() => pin.mutate(failure)}
                    >
                      {t(failure.pinned ? "tool.unpin" : "tool.pin")}
                    </Button>
                    <Button
                      size="compact-xs"
                      variant="subtle"
                      color="red"
                      onClick={() => forget.mutate(failure.failure_id)}
                    >
                      {t("delete")}
                    </Button>
                  </Group>
                </Group>
              </Paper>
            ))}
          </Stack>
        )
      }
    </QueryView>
  );
}
