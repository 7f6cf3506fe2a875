import { Box, Collapse, Text, UnstyledButton } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconBulb, IconRoute } from "@tabler/icons-react";
import { useTranslation } from "react-i18next";
import type { CallItem, RunItem } from "../api/runState";
import { LazyMarkdown } from "./LazyMarkdown";
import { ToolCall } from "./ToolCall";

export type ItemGroup = Exclude<RunItem, CallItem> | { type: "calls"; calls: CallItem[] };

/** Group calls that follow one another directly: the model made them in parallel. */
export function groupCalls(items: RunItem[]): ItemGroup[] {
  const groups: ItemGroup[] = [];
  for (const item of items) {
    const last = groups.at(-1);
    if (item.type !== "call") groups.push(item);
    else if (last?.type === "calls") last.calls.push(item);
    else groups.push({ type: "calls", calls: [item] });
  }
  return groups;
}

/** What happened in a run, in order: thinking, texts, calls, decisions. */
export function RunItems({ items, isActive }: { items: RunItem[]; isActive: boolean }) {
  return groupCalls(items).map((group, index) => {
    switch (group.type) {
      case "text":
        return <LazyMarkdown key={index} text={group.text} />;
      case "thinking":
        return <Thinking key={index} text={group.text} />;
      case "calls":
        return (
          <div key={index} className="calls">
            {group.calls.map((call, position) => (
              <ToolCall key={`${call.callId}-${position}`} call={call} isActive={isActive} />
            ))}
          </div>
        );
      case "decision":
        return (
          <Text key={index} size="xs" c="dimmed">
            <IconRoute size={13} style={{ verticalAlign: "-2px" }} /> {group.action}: {group.reason}
          </Text>
        );
      default:
        return null;
    }
  });
}

function Thinking({ text }: { text: string }) {
  const { t } = useTranslation();
  const [isOpen, { toggle }] = useDisclosure();
  return (
    <Box>
      <UnstyledButton onClick={toggle} aria-expanded={isOpen}>
        <Text size="xs" c="dimmed">
          <IconBulb size={14} style={{ verticalAlign: "-2px" }} /> {t("run.thinking")}
        </Text>
      </UnstyledButton>
      <Collapse expanded={isOpen}>
        <Text size="xs" c="dimmed" style={{ whiteSpace: "pre-wrap" }} pl="md">
          {text}
        </Text>
      </Collapse>
    </Box>
  );
}
