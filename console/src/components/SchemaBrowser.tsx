import { Accordion, Group, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type DatabaseSchema, withQuery } from "../api/client";
import { type DataSource, getSourceHeaders } from "../api/queries";
import { formatNumber } from "../format";
import { QueryView } from "./States";

/** The tables and columns of a database. */
export function SchemaBrowser({ source }: { source: DataSource }) {
  const { t } = useTranslation();
  const [search, setSearch] = useState("");
  const query = useQuery({
    queryKey: ["schema", source],
    queryFn: () =>
      api<DatabaseSchema>(withQuery("/api/databases/schema", { database: source.database }), {
        headers: getSourceHeaders(source),
      }),
    staleTime: 300_000,
  });
  return (
    <Stack gap="xs" component="section" aria-label={t("data.schema")}>
      <QueryView query={query}>
        {(schema) => (
          <>
            <Text size="sm" fw={600}>
              {schema.database}{" "}
              <Text span size="xs" c="dimmed">
                {schema.dialect}
              </Text>
            </Text>
            <TextInput
              size="xs"
              placeholder={t("data.searchSchema")}
              aria-label={t("data.searchSchema")}
              value={search}
              onChange={(event) => setSearch(event.currentTarget.value)}
            />
            <Tables schema={schema} search={search.toLowerCase()} />
          </>
        )}
      </QueryView>
    </Stack>
  );
}

function Tables({ schema, search }: { schema: DatabaseSchema; search: string }) {
  const matches = (name: string) => name.toLowerCase().includes(search);
  const tables = schema.tables.filter(
    (table) => matches(table.name) || table.columns.some(({ name }) => matches(name)),
  );
  return (
    <Accordion multiple chevronSize={14} className="schema">
      {tables.map((table) => (
        <Accordion.Item key={table.name} value={table.name}>
          <Accordion.Control>
            <Group justify="space-between" wrap="nowrap" gap="xs">
              <Text size="xs" ff="monospace" className="truncate">
                {table.name}
              </Text>
              <Text size="xs" c="dimmed">
                {table.row_count !== null && formatNumber(table.row_count)}
              </Text>
            </Group>
          </Accordion.Control>
          <Accordion.Panel>
            {table.columns.map((column) => (
              <Group key={column.name} justify="space-between" gap="xs" wrap="nowrap">
                <Text
                  size="xs"
                  ff="monospace"
                  fw={column.primary_key ? 600 : 400}
                  title={column.references ?? undefined}
                  className="truncate"
                >
                  {column.name}
                  {column.references && " →"}
                </Text>
                <Text size="xs" c="dimmed" className="truncate">
                  {column.type.toLowerCase()}
                </Text>
              </Group>
            ))}
          </Accordion.Panel>
        </Accordion.Item>
      ))}
    </Accordion>
  );
}
