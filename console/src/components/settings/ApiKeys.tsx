import { Button, Group, Stack, Text } from "@mantine/core";
import { IconKey, IconPlus } from "@tabler/icons-react";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { type ApiKey, api } from "../../api/client";
import { keysQuery, sessionQuery } from "../../api/queries";
import { formatNumber, formatTime } from "../../format";
import { ConfirmButton } from "../Confirm";
import { RecordTable } from "../RecordTable";
import { Empty, QueryView } from "../States";
import { CreateKey } from "./CreateKey";

/** The API keys: create and revoke them. */
export function ApiKeys() {
  const { t } = useTranslation();
  const query = useQuery(keysQuery);
  const hasKey = useQuery(sessionQuery).data?.has_key ?? true;
  const [isCreating, setCreating] = useState(false);
  return (
    <Stack>
      <Group justify="space-between">
        <Text size="sm" c="dimmed" maw={560}>
          {t("settings.keysText")}
        </Text>
        <Button size="xs" leftSection={<IconPlus size={15} />} onClick={() => setCreating(true)}>
          {t("settings.createKey")}
        </Button>
      </Group>
      <QueryView query={query}>
        {({ items }) =>
          items.length === 0 ? (
            <Empty icon={<IconKey size={32} stroke={1.3} />} title={t("settings.noKeys")}>
              {!hasKey && t("settings.noKeysText")}
            </Empty>
          ) : (
            <KeyTable keys={items} />
          )
        }
      </QueryView>
      {isCreating && <CreateKey onClose={() => setCreating(false)} />}
    </Stack>
  );
}

function KeyTable({ keys }: { keys: ApiKey[] }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const revoke = async (id: string) => {
    await api(`/api/keys/${id}`, { method: "DELETE" });
    await client.invalidateQueries({ queryKey: keysQuery.queryKey });
  };
  return (
    <RecordTable
      items={keys}
      getKey={({ key_id }) => key_id}
      columns={[
        {
          label: t("settings.keyName"),
          cell: (key) => (
            <>
              <Text size="sm">{key.name}</Text>
              <Text size="xs" c="dimmed" ff="monospace">
                {key.prefix}…
              </Text>
            </>
          ),
          kind: "wide",
        },
        { label: t("settings.scopes"), cell: (key) => key.scopes.join(", ") },
        {
          label: t("settings.tokensUsed"),
          cell: (key) =>
            formatNumber(key.tokens_used) +
            (key.token_budget === null ? "" : ` / ${formatNumber(key.token_budget)}`),
          kind: "number",
        },
        {
          label: t("settings.rateLimit"),
          cell: ({ rate_limit }) => (rate_limit ? t("settings.perSeconds", rate_limit) : "–"),
          kind: "number",
        },
        { label: t("settings.lastUsed"), cell: (key) => formatTime(key.last_used_at) || "–", kind: "time" },
        {
          label: t("actions"),
          cell: (key) =>
            key.revoked_at ? (
              <Text size="xs" c="dimmed">
                {t("settings.revoked")}
              </Text>
            ) : (
              <ConfirmButton
                size="compact-xs"
                variant="light"
                color="red"
                aria-label={`${t("settings.revoke")} ${key.name}`}
                label={t("settings.revoke")}
                title={t("settings.revokeTitle", { name: key.name })}
                text={t("settings.revokeText")}
                action={() => revoke(key.key_id)}
              />
            ),
        },
      ]}
    />
  );
}
