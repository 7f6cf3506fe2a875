import { ActionIcon, Button, Group, Menu, Modal, ScrollArea, Stack, Text, TextInput } from "@mantine/core";
import { IconDots, IconPencil, IconPlus, IconSearch, IconTrash } from "@tabler/icons-react";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type Conversation } from "../api/client";
import { conversationsQuery } from "../api/queries";
import { formatTime } from "../format";
import { ConfirmDialog } from "./Confirm";
import { ButtonLink, PageLink } from "./links";
import { ErrorAlert, QueryView } from "./States";

/** The conversations of the key: search, open, rename, delete. */
export function ConversationList({ current, onSelect }: { current: string; onSelect?: () => void }) {
  const { t } = useTranslation();
  const [search, setSearch] = useState("");
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
            return found.map((item) => (
              <Row
                key={item.conversation_id}
                conversation={item}
                isCurrent={item.conversation_id === current}
                onSelect={onSelect}
              />
            ));
          }}
        </QueryView>
      </ScrollArea>
    </Stack>
  );
}

type RowProps = { conversation: Conversation; isCurrent: boolean; onSelect?: () => void };

function Row({ conversation, isCurrent, onSelect }: RowProps) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const id = conversation.conversation_id;
  const title = conversation.title || id;
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
          {title}
        </Text>
        <Text size="xs" c="dimmed">
          {formatTime(conversation.updated_at)}
        </Text>
      </PageLink>
      <Menu position="bottom-end" withinPortal>
        <Menu.Target>
          <ActionIcon size="sm" mr={4} aria-label={t("chat.menu", { title })}>
            <IconDots size={15} />
          </ActionIcon>
        </Menu.Target>
        <Menu.Dropdown>
          <Menu.Item leftSection={<IconPencil size={14} />} onClick={() => setDialog("rename")}>
            {t("rename")}
          </Menu.Item>
          <Menu.Item leftSection={<IconTrash size={14} />} color="red" onClick={() => setDialog("delete")}>
            {t("delete")}
          </Menu.Item>
        </Menu.Dropdown>
      </Menu>
      <RenameDialog
        conversation={conversation}
        isOpen={dialog === "rename"}
        onClose={() => setDialog(null)}
      />
      <DeleteDialog
        conversation={conversation}
        isOpen={dialog === "delete"}
        isCurrent={isCurrent}
        onClose={() => setDialog(null)}
      />
    </Group>
  );
}

type DialogProps = { conversation: Conversation; isOpen: boolean; onClose: () => void };

function RenameDialog({ conversation, isOpen, onClose }: DialogProps) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const [title, setTitle] = useState(conversation.title ?? "");
  const rename = useMutation({
    mutationFn: () =>
      api(`/agent/conversations/${encodeURIComponent(conversation.conversation_id)}`, {
        method: "PUT",
        body: { title },
      }),
    onSuccess: () => {
      client.invalidateQueries({ queryKey: conversationsQuery.queryKey });
      onClose();
    },
  });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    rename.mutate();
  };
  return (
    <Modal opened={isOpen} onClose={onClose} title={t("chat.renameTitle")}>
      <form onSubmit={submit}>
        <Stack>
          <TextInput
            label={t("chat.title")}
            value={title}
            onChange={(event) => setTitle(event.currentTarget.value)}
            data-autofocus
            maxLength={200}
          />
          <ErrorAlert error={rename.error} />
          <Button type="submit" loading={rename.isPending} disabled={!title.trim()}>
            {t("save")}
          </Button>
        </Stack>
      </form>
    </Modal>
  );
}

function DeleteDialog({ conversation, isOpen, isCurrent, onClose }: DialogProps & { isCurrent: boolean }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const remove = async () => {
    await api(`/agent/conversations/${encodeURIComponent(conversation.conversation_id)}`, {
      method: "DELETE",
    });
    await client.invalidateQueries({ queryKey: conversationsQuery.queryKey });
    if (isCurrent) await navigate({ to: "/chat" });
  };
  return (
    <ConfirmDialog
      isOpen={isOpen}
      onClose={onClose}
      title={t("chat.deleteTitle")}
      text={t("chat.deleteText", { title: conversation.title })}
      label={t("delete")}
      action={remove}
    />
  );
}
