import { Button, Group, ScrollArea, Stack, Text, TextInput } from "@mantine/core";
import { IconPlus, IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Conversation } from "../api/client";
import { conversationsQuery } from "../api/queries";
import { formatNumber, formatTime } from "../format";
import { ButtonLink, PageLink } from "./links";
import { QueryView } from "./States";

const ROWS = 100;
const ConversationMenu = lazy(() => import("./ConversationMenu"));

/** The conversations of the key: search, open, rename, delete. */
export function ConversationList({ current, onSelect }: { current: string; onSelect?: () => void }) {
  const { t } = useTranslation();
  const [search, setSearch] = useState("");
  const [shown, setShown] = useState(ROWS);
  const query = useQuery(conversationsQuery);
  return (
    <Stack gap="xs" h="100%" p="xs">
      <ButtonLink
        to="/chat"
        onClick={onSelect}
        variant="default"
        size="xs"
        leftSection={<IconPlus size={15} />}
        justify="flex-start"
      >
        {t("chat.new")}
      </ButtonLink>
      <TextInput
        size="xs"
        placeholder={t("chat.search")}
        aria-label={t("chat.search")}
        leftSection={<IconSearch size={14} />}
        value={search}
        onChange={(event) => setSearch(event.currentTarget.value)}
      />
      <ScrollArea
        flex={1}
        type="hover"
        viewportProps={{ role: "region", tabIndex: 0, "aria-label": t("chat.list") }}
      >
        <QueryView query={query}>
          {({ items }) => {
            const found = items.filter((item) =>
              (item.title ?? "").toLowerCase().includes(search.toLowerCase()),
            );
            if (found.length === 0) {
              return (
                <Text size="xs" c="dimmed" p="xs">
                  {t(items.length ? "nothingFound" : "chat.none")}
                </Text>
              );
            }
            return (
              <>
                {found.slice(0, shown).map((item) => (
                  <Row
                    key={item.conversation_id}
                    conversation={item}
                    isCurrent={item.conversation_id === current}
                    onSelect={onSelect}
                  />
                ))}
                {found.length > shown && (
                  <Button variant="subtle" size="compact-xs" onClick={() => setShown(shown + ROWS)}>
                    {t("more")} ({formatNumber(found.length - shown)})
                  </Button>
                )}
              </>
            );
          }}
        </QueryView>
      </ScrollArea>
    </Stack>
  );
}

type RowProps = { conversation: Conversation; isCurrent: boolean; onSelect?: () => void };

function Row({ conversation, isCurrent, onSelect }: RowProps) {
  const id = conversation.conversation_id;
  return (
    <Group gap={0} wrap="nowrap" className="conversation" data-current={isCurrent || undefined}>
      <PageLink
        to="/chat/$conversationId"
        params={{ conversationId: id }}
        onClick={onSelect}
        flex={1}
        px={8}
        py={5}
        miw={0}
        underline="never"
      >
        <Text size="sm" className="truncate">
          {conversation.title || id}
        </Text>
        <Text size="xs" c="dimmed">
          {formatTime(conversation.updated_at)}
        </Text>
      </PageLink>
      <Suspense>
        <ConversationMenu conversation={conversation} isCurrent={isCurrent} />
      </Suspense>
    </Group>
  );
}
