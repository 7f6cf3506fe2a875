import { Badge, Box, Group, Loader, Stack, Text, UnstyledButton } from "@mantine/core";
import {
  IconAlertCircle,
  IconChevronDown,
  IconChevronRight,
  IconCircleCheck,
  IconHandStop,
  IconShieldX,
} from "@tabler/icons-react";
import { memo, useState } from "react";
import { useTranslation } from "react-i18next";
import { toMedia } from "../api/media";
import type { CallItem } from "../api/runState";
import { formatSeconds, previewArguments } from "../format";
import { ApprovalCard } from "./ApprovalCard";
import { Json } from "./Json";
import { Media } from "./Media";

const REFUSALS = new Set(["refused", "denied", "rate_limited"]);

/** A tool call as it happens: its arguments, its result, and what was repaired or refused. */
export const ToolCall = memo(function ToolCall({ call, isActive }: { call: CallItem; isActive: boolean }) {
  const { t } = useTranslation();
  const [isOpen, setOpen] = useState(false);
  const isWaiting = call.approval?.status === "pending" && isActive;
  const { result } = call;
  return (
    <Box className="bordered" style={{ minWidth: 0, overflow: "hidden" }} data-tool-call={call.name}>
      <UnstyledButton onClick={() => setOpen(!isOpen)} w="100%" px="sm" py={7} aria-expanded={isOpen}>
        <Group gap={8} wrap="nowrap">
          <CallIcon call={call} isActive={isActive} />
          <Text size="sm" fw={600} ff="monospace" style={{ whiteSpace: "nowrap" }}>
            {call.name}
          </Text>
          <Text size="xs" c="dimmed" ff="monospace" className="truncate" flex={1}>
            {previewArguments(call.arguments)}
          </Text>
          {result?.failure && (
            <Badge size="sm" variant="light" color={REFUSALS.has(result.failure) ? "orange" : "red"}>
              {t(`failure.${result.failure}`, result.failure)}
            </Badge>
          )}
          {result && result.repairs.length > 0 && (
            <Badge size="sm" variant="light" color="yellow">
              {t("call.repaired")}
            </Badge>
          )}
          {result && result.attempts > 1 && (
            <Badge size="sm" variant="light" color="gray">
              ×{result.attempts}
            </Badge>
          )}
          {result?.cached && (
            <Badge size="sm" variant="light" color="gray">
              {t("call.cached")}
            </Badge>
          )}
          {result && (
            <Text size="xs" c="dimmed" style={{ whiteSpace: "nowrap" }}>
              {formatSeconds(result.seconds)}
            </Text>
          )}
          {isOpen ? <IconChevronDown size={15} /> : <IconChevronRight size={15} />}
        </Group>
      </UnstyledButton>
      {result?.media && (
        <Box px="sm" pb="sm">
          <Media parts={toMedia(result.media)} />
        </Box>
      )}
      {call.approval && <ApprovalCard approval={call.approval} tool={call.name} isActive={isWaiting} />}
      {isOpen && (
        <Stack gap="xs" px="sm" pb="sm">
          <CallDetails call={call} />
        </Stack>
      )}
    </Box>
  );
});

function CallDetails({ call }: { call: CallItem }) {
  const { t } = useTranslation();
  const { result } = call;
  return (
    <>
      <Text size="xs" c="dimmed" fw={600}>
        {t("call.arguments")}
      </Text>
      <Json value={call.arguments} label={t("call.arguments")} />
      {result && result.repairs.length > 0 && (
        <Text size="xs" c="dimmed">
          {t("call.repairs")}: {result.repairs.join("; ")}
        </Text>
      )}
      {(result || call.output) && (
        <>
          <Text size="xs" c="dimmed" fw={600}>
            {t(result?.failure ? "call.failure" : "call.result")}
          </Text>
          <Json value={result ? result.result : call.output} label={t("call.result")} />
        </>
      )}
      {result && result.cut > 0 && (
        <Text size="xs" c="dimmed">
          {t("call.cut", { count: result.cut })}
        </Text>
      )}
    </>
  );
}

function CallIcon({ call, isActive }: { call: CallItem; isActive: boolean }) {
  const { t } = useTranslation();
  const isOpen = !call.result && isActive;
  if (isOpen && call.approval?.status !== "pending")
    return <Loader size={14} role="status" aria-label={t("call.running")} />;
  const [Icon, color, label] = isOpen
    ? ([IconHandStop, "orange", "waiting"] as const)
    : !call.result || REFUSALS.has(call.result.failure ?? "")
      ? ([IconShieldX, "orange", "refused"] as const)
      : call.result.failure
        ? ([IconAlertCircle, "red", "failed"] as const)
        : ([IconCircleCheck, "teal", "succeeded"] as const);
  return (
    <Icon size={16} color={`var(--mantine-color-${color}-6)`} role="img" aria-label={t(`call.${label}`)} />
  );
}
