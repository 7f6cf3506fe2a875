import { Stack, Table } from "@mantine/core";
import { type QueryKey, useInfiniteQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { api, type Page, withQuery } from "../api/client";
import { capitalize } from "../format";
import { ActionButton } from "./ActionButton";
import { ErrorAlert, Loading } from "./States";

const PAGE_SIZE = 50;

export type Column<Item> = {
  label: string;
  cell: (item: Item) => ReactNode;
  kind?: "number" | "duration" | "time" | "wide";
};

type Props<Item> = { columns: Column<Item>[]; items: Item[]; getKey: (item: Item) => string | number };

/** A table of records. On narrow screens each record is a block that starts with its first column. */
export function RecordTable<Item>({ columns, items, getKey }: Props<Item>) {
  return (
    <div className="records">
      <Table highlightOnHover>
        <Table.Thead>
          <Table.Tr>
            {columns.map(({ label, kind }) => (
              <Table.Th key={label} className={kind}>
                {label}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {items.map((item) => (
            <Table.Tr key={getKey(item)}>
              {columns.map(({ label, cell, kind }) => (
                <Table.Td key={label} className={kind} data-label={capitalize(label)}>
                  {cell(item)}
                </Table.Td>
              ))}
            </Table.Tr>
          ))}
        </Table.Tbody>
      </Table>
    </div>
  );
}

type PagedProps<Item> = Omit<Props<Item>, "items"> & {
  queryKey: QueryKey;
  path: string;
  filter?: Record<string, string>;
  empty: ReactNode;
};

/** The records of a list of the API, page by page, refreshed after five seconds for each page that is shown. */
export function PagedRecords<Item>({ queryKey, path, filter = {}, empty, ...table }: PagedProps<Item>) {
  const { t } = useTranslation();
  const query = useInfiniteQuery({
    queryKey: [...queryKey, filter],
    queryFn: ({ pageParam }) =>
      api<Page<Item>>(withQuery(path, { ...filter, after: pageParam, limit: PAGE_SIZE })),
    initialPageParam: "",
    getNextPageParam: (page) => page.next || undefined,
    refetchInterval: ({ state }) => 5_000 * (state.data?.pages.length ?? 1),
  });
  const items = query.data?.pages.flatMap((page) => page.items) ?? [];
  return (
    <Stack>
      <ErrorAlert error={query.error} onRetry={() => query.refetch()} />
      {query.isPending && <Loading />}
      {query.data && (items.length > 0 ? <RecordTable items={items} {...table} /> : empty)}
      {query.hasNextPage && (
        <ActionButton
          variant="default"
          size="xs"
          w="fit-content"
          onClick={() => query.fetchNextPage()}
          loading={query.isFetchingNextPage}
        >
          {t("more")}
        </ActionButton>
      )}
    </Stack>
  );
}
