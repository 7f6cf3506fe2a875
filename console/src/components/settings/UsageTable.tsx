import { Stack } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { api, type Usage, withQuery } from "../../api/client";
import { formatNumber } from "../../format";
import { RecordTable } from "../RecordTable";
import { Empty, QueryView } from "../States";
import { PeriodSelect, usePeriod } from "../StatisticsCharts";

/** The requests, tokens and cost of each key and model. */
export function UsageTable() {
  const { t } = useTranslation();
  const { days } = usePeriod();
  const query = useQuery({
    queryKey: ["usage", days],
    queryFn: () => {
      const since = new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
      return api<Usage>(withQuery("/api/usage", { since }));
    },
    refetchInterval: 5_000,
  });
  return (
    <Stack>
      <PeriodSelect />
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty title={t("settings.noUsage")}>{t("settings.noUsageText")}</Empty>
          ) : (
            <RecordTable
              items={items}
              getKey={({ key_id, model }) => `${key_id} ${model}`}
              columns={[
                { label: t("chat.model"), cell: ({ model }) => model, kind: "wide" },
                { label: t("settings.key"), cell: ({ key_name, key_id }) => key_name || key_id || "–" },
                {
                  label: t("settings.requests"),
                  cell: ({ requests }) => formatNumber(requests),
                  kind: "number",
                },
                {
                  label: t("runs.inOut"),
                  cell: (row) => `${formatNumber(row.input_tokens)} / ${formatNumber(row.output_tokens)}`,
                  kind: "number",
                },
                {
                  label: t("settings.cachedTokens"),
                  cell: ({ cached_tokens }) => formatNumber(cached_tokens),
                  kind: "number",
                },
                { label: t("runs.cost"), cell: ({ cost }) => cost?.toFixed(4) ?? "–", kind: "number" },
              ]}
            />
          )
        }
      </QueryView>
    </Stack>
  );
}
