import { IconStack2 } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { Batch } from "../api/client";
import { AgentName } from "../components/AgentName";
import { BatchProgress } from "../components/BatchProgress";
import { PageLink } from "../components/links";
import { Page } from "../components/Page";
import { type Column, PagedRecords } from "../components/RecordTable";
import { Empty } from "../components/States";
import { Status } from "../components/Status";
import { formatNumber, formatTime } from "../format";

export function BatchesPage() {
  const { t } = useTranslation();
  const columns: Column<Batch>[] = [
    {
      label: t("batches.batch"),
      cell: ({ batch_id }) => (
        <PageLink to="/batches/$batchId" params={{ batchId: batch_id }} size="sm" ff="monospace">
          {batch_id.slice(0, 8)}
        </PageLink>
      ),
    },
    { label: t("runs.status"), cell: ({ status }) => <Status value={status} /> },
    { label: t("chat.agent"), cell: ({ agent_id }) => <AgentName id={agent_id} /> },
    { label: t("batches.progress"), cell: (batch) => <BatchProgress batch={batch} />, kind: "wide" },
    {
      label: t("tokens"),
      cell: (batch) => formatNumber(batch.input_tokens + batch.output_tokens),
      kind: "number",
    },
    { label: t("runs.time"), cell: ({ created_at }) => formatTime(created_at), kind: "time" },
  ];
  return (
    <Page title={t("nav.batches")} description={t("batches.description")}>
      <PagedRecords
        queryKey={["batches", "list"]}
        path="/api/batches"
        columns={columns}
        getKey={({ batch_id }) => batch_id}
        empty={
          <Empty icon={<IconStack2 size={32} stroke={1.3} />} title={t("batches.none")}>
            {t("batches.noneText")}
          </Empty>
        }
      />
    </Page>
  );
}
