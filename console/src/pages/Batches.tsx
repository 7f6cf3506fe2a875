import { Button, Progress, Stack, Table, Text } from "@mantine/core";
import { IconStack2 } from "@tabler/icons-react";
import { useInfiniteQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { api, type Batch, type Page as ListPage, withQuery } from "../api/client";
import { PageLink } from "../components/links";
import { Page } from "../components/Page";
import { Empty, ErrorAlert } from "../components/States";
import { Status } from "../components/Status";
import { formatNumber, formatTime } from "../format";

const PAGE_SIZE = 50;

export function BatchesPage() {
  const { t } = useTranslation();
  const query = useInfiniteQuery({
    queryKey: ["batches", "list"],
    queryFn: ({ pageParam }) =>
      api<ListPage<Batch>>(withQuery("/api/batches", { after: pageParam, limit: PAGE_SIZE })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next || undefined,
    refetchInterval: 5_000,
  });
  const batches = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Page title={t("nav.batches")} description={t("batches.description")}>
      <Stack>
        <ErrorAlert error={query.error} onRetry={() => query.refetch()} />
        {query.data && batches.length === 0 && (
          <Empty icon={<IconStack2 size={32} stroke={1.3} />} title={t("batches.none")}>
            {t("batches.noneText")}
          </Empty>
        )}
        {batches.length > 0 && <BatchTable batches={batches} />}
        {query.hasNextPage && (
          <Button
            variant="default"
            size="xs"
            w="fit-content"
            onClick={() => query.fetchNextPage()}
            loading={query.isFetchingNextPage}
          >
            {t("more")}
          </Button>
        )}
      </Stack>
    </Page>
  );
}

function BatchTable({ batches }: { batches: Batch[] }) {
  const { t } = useTranslation();
  return (
    <Table.ScrollContainer minWidth={640}>
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            <Table.Th>{t("batches.batch")}</Table.Th>
            <Table.Th>{t("runs.status")}</Table.Th>
            <Table.Th>{t("chat.agent")}</Table.Th>
            <Table.Th>{t("batches.progress")}</Table.Th>
            <Table.Th ta="right">{t("tokens")}</Table.Th>
            <Table.Th>{t("runs.time")}</Table.Th>
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {batches.map((batch) => (
            <Table.Tr key={batch.batch_id}>
              <Table.Td>
                <PageLink to="/batches/$batchId" params={{ batchId: batch.batch_id }} size="sm">
                  {batch.batch_id.slice(0, 8)}
                </PageLink>
              </Table.Td>
              <Table.Td>
                <Status value={batch.status} />
              </Table.Td>
              <Table.Td>{batch.agent_id}</Table.Td>
              <Table.Td miw={180}>
                <BatchProgress batch={batch} />
              </Table.Td>
              <Table.Td ta="right">{formatNumber(batch.input_tokens + batch.output_tokens)}</Table.Td>
              <Table.Td style={{ whiteSpace: "nowrap" }}>{formatTime(batch.created_at)}</Table.Td>
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

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
