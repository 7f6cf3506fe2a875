import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { ApiError, api, type ConversationDetail } from "../api/client";
import { LazyMarkdown } from "./LazyMarkdown";
import { Empty, QueryView } from "./States";

/** The messages of a conversation whose runs are no longer stored. */
export function StoredMessages({ conversationId }: { conversationId: string }) {
  const { t } = useTranslation();
  const query = useQuery({
    queryKey: ["conversation", conversationId],
    queryFn: () => api<ConversationDetail>(`/agent/conversations/${encodeURIComponent(conversationId)}`),
  });
  if (query.error instanceof ApiError && query.error.status === 404) {
    return <Empty title={t("chat.missing")}>{t("chat.missingText")}</Empty>;
  }
  return (
    <Stack className="message-list" gap="lg" py="lg">
      <QueryView query={query}>
        {(conversation) =>
          (conversation.messages ?? [])
            .filter((message) => message.content)
            .map((message, index) => {
              if (message.role === "user")
                return (
                  <div key={index} className="user-message">
                    {message.content}
                  </div>
                );
              if (message.role === "assistant") return <LazyMarkdown key={index} text={message.content} />;
              return (
                <Text key={index} size="xs" c="dimmed" ff="monospace" lineClamp={3}>
                  {message.name}: {message.content}
                </Text>
              );
            })
        }
      </QueryView>
    </Stack>
  );
}
