import { Progress, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import type { Batch } from "../api/client";
import { formatNumber } from "../format";

/** The number of tasks that have ended, with a bar. */
export function BatchProgress({ batch }: { batch: Batch }) {
  const { t } = useTranslation();
  const progress = { ended: formatNumber(batch.ended), total: formatNumber(batch.total) };
  return (
    <>
      <Text size="xs" mb={4}>
        {t("batches.endedOf", progress)}
      </Text>
      <Progress value={(100 * batch.ended) / batch.total} aria-label={t("batches.progress")} />
    </>
  );
}
