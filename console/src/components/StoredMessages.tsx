import { Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useTranslation } from "react-i18next";
import { ApiError } from "../api/client";
import { toMedia } from "../api/media";
import { conversationQuery } from "../api/queries";
import { LazyMarkdown } from "./LazyMarkdown";
import { Media } from "./Media";
import { Empty, QueryView } from "./States";

/** The messages of a conversation whose runs are no longer stored. */
export function StoredMessages({ conversationId }: { conversationId: string }) {
  const { t } = useTranslation();
  const query = useQuery(conversationQuery(conversationId));
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
                    {message.parts && <Media parts={toMedia(message.parts)} />}
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
