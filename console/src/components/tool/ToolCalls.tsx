import { Group, SimpleGrid, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import { api, type Execution, type Page as ListPage, withQuery } from "../../api/client";
import { formatNumber } from "../../format";
import { ExecutionTable } from "../ExecutionTable";
import { QueryView } from "../States";
import { CallCharts, PeriodSelect, usePeriod } from "../StatisticsCharts";

const CHART_LIMIT = 1000;

/** The calls of a tool over time, and each of them. */
export function ToolCalls({ toolId }: { toolId: string }) {
  const { t } = useTranslation();
  const { days } = usePeriod();
  const since = useMemo(() => new Date(Date.now() - days * 86_400_000).toISOString(), [days]);
  const filter = { tool_id: toolId, since };
  const query = useQuery({
    queryKey: ["executions", filter],
    queryFn: () => api<ListPage<Execution>>(withQuery("/api/executions", { ...filter, limit: CHART_LIMIT })),
    refetchInterval: 5_000,
  });
  return (
    <Stack>
      <Group justify="space-between">
        <PeriodSelect />
        {query.data?.next && (
          <Text size="xs" c="dimmed">
            {t("tool.chartLimit", { number: formatNumber(CHART_LIMIT) })}
          </Text>
        )}
      </Group>
      <QueryView query={query}>
        {({ items }) =>
          items.length > 0 && (
            <SimpleGrid cols={{ base: 1, md: 2 }}>
              <CallCharts calls={items} days={days} />
            </SimpleGrid>
          )
        }
      </QueryView>
      <ExecutionTable filter={filter} />
    </Stack>
  );
}
