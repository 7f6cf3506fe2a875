import "../styles/more.css";
import { ActionIcon, Menu, Modal, TextInput } from "@mantine/core";
import { IconDots, IconPencil, IconTrash } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api, type Conversation } from "../api/client";
import { conversationsQuery, startedConversations } from "../api/queries";
import { ConfirmDialog } from "./Confirm";
import { MutationForm } from "./MutationForm";

type Props = { conversation: Conversation; isCurrent: boolean };

/** The menu of a conversation in the list: rename and delete. */
export default function ConversationMenu({ conversation, isCurrent }: Props) {
  const { t } = useTranslation();
  const [dialog, setDialog] = useState<"rename" | "delete" | null>(null);
  const title = conversation.title || conversation.conversation_id;
  return (
    <>
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
    </>
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
  return (
    <Modal opened={isOpen} onClose={onClose} title={t("chat.renameTitle")}>
      <MutationForm mutation={rename} action={t("save")} isIncomplete={!title.trim()}>
        <TextInput
          label={t("chat.title")}
          value={title}
          onChange={(event) => setTitle(event.currentTarget.value)}
          data-autofocus
          maxLength={200}
        />
      </MutationForm>
    </Modal>
  );
}

function DeleteDialog({ conversation, isOpen, isCurrent, onClose }: DialogProps & { isCurrent: boolean }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const remove = async () => {
    const id = conversation.conversation_id;
    await api(`/agent/conversations/${encodeURIComponent(id)}`, { method: "DELETE" });
    startedConversations.delete(id);
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
