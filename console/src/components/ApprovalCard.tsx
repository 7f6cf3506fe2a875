import { Box, Button, Group, Stack, Text, TextInput } from "@mantine/core";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { api } from "../api/client";
import { useScope } from "../api/queries";
import type { CallItem } from "../api/runState";
import { ActionButton } from "./ActionButton";
import { Json } from "./Json";
import { ErrorAlert } from "./States";

type Props = { approval: NonNullable<CallItem["approval"]>; tool: string; isActive: boolean };

/** A call that waits for a person, with the exact arguments. The decision holds for them alone. */
export function ApprovalCard({ approval, tool, isActive }: Props) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const canDecide = useScope("approve");
  const [reason, setReason] = useState("");
  const decide = useMutation({
    mutationFn: (decision: "approve" | "deny") =>
      api(`/api/approvals/${approval.id}`, {
        method: "POST",
        body: { decision, reason, sha256: approval.sha256 },
      }),
    onSettled: () => client.invalidateQueries({ queryKey: ["approvals"] }),
  });
  if (!isActive) {
    return (
      <Text size="xs" c="dimmed" px="sm" pb={6}>
        {t(`approval.${approval.status}`, approval.status)}
        {approval.reason && `: ${approval.reason}`}
      </Text>
    );
  }
  return (
    <Box component="section" aria-label={t("approval.title", { tool })} px="sm" pb="sm">
      <Stack gap="xs">
        <Text size="sm" fw={600}>
          {t(canDecide ? "approval.title" : "approval.titleWithoutScope", { tool })}
        </Text>
        <Json value={approval.arguments} label={t("call.arguments")} />
        {canDecide && (
          <>
            <TextInput
              size="xs"
              label={t("approval.reason")}
              value={reason}
              onChange={(event) => setReason(event.currentTarget.value)}
            />
            <ErrorAlert error={decide.error} />
            <Group gap="xs">
              <ActionButton
                size="xs"
                onClick={() => decide.mutate("approve")}
                loading={decide.isPending}
                disabled={decide.isSuccess}
              >
                {t("approval.approve")}
              </ActionButton>
              <Button
                size="xs"
                variant="light"
                color="red"
                onClick={() => decide.mutate("deny")}
                disabled={decide.isPending || decide.isSuccess}
              >
                {t("approval.deny")}
              </Button>
            </Group>
          </>
        )}
      </Stack>
    </Box>
  );
}
