import "../styles/more.css";
import { Drawer } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { ConversationList } from "./ConversationList";

type Props = { current: string; isOpen: boolean; onClose: () => void };

/** The conversations beside the chat on narrow screens. */
export default function ConversationDrawer({ current, isOpen, onClose }: Props) {
  const { t } = useTranslation();
  return (
    <Drawer opened={isOpen} onClose={onClose} title={t("chat.list")} size={300}>
      <ConversationList current={current} onSelect={onClose} />
    </Drawer>
  );
}
