import { Button, type ButtonProps, Group, Modal, Stack, Text } from "@mantine/core";
import { IconTrash } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { useBlocker } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ActionButton } from "./ActionButton";
import { ErrorAlert } from "./States";

type Question = { title: string; text: string; label: string; action: () => Promise<unknown> };
type DialogProps = Question & { isOpen: boolean; onClose: () => void };

/** A question before an action that cannot be undone; it stays open with the error if the action fails. */
export function ConfirmDialog({ title, text, label, action, isOpen, onClose }: DialogProps) {
  const { t } = useTranslation();
  const run = useMutation({ mutationFn: action, onSuccess: onClose });
  return (
    <Modal opened={isOpen} onClose={onClose} title={title}>
      <Stack>
        <Text size="sm">{text}</Text>
        <ErrorAlert error={run.error} />
        <Group justify="flex-end" gap="xs">
          <Button variant="default" onClick={onClose} data-autofocus>
            {t("back")}
          </Button>
          <ActionButton color="red.8" loading={run.isPending} onClick={() => run.mutate()}>
            {label}
          </ActionButton>
        </Group>
      </Stack>
    </Modal>
  );
}

type ConfirmButtonProps = Question & ButtonProps & { "aria-label"?: string };

/** A button that asks before it acts. */
export function ConfirmButton({ title, text, label, action, ...button }: ConfirmButtonProps) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <Button size="xs" {...button} onClick={() => setAsking(true)}>
        {label}
      </Button>
      <ConfirmDialog {...{ title, text, label, action }} isOpen={isAsking} onClose={() => setAsking(false)} />
    </>
  );
}

/** A question before leaving a page with changes that are not saved. */
export function UnsavedChanges({ isChanged }: { isChanged: boolean }) {
  const { t } = useTranslation();
  const blocker = useBlocker({
    shouldBlockFn: () => isChanged,
    enableBeforeUnload: isChanged,
    withResolver: true,
  });
  return (
    <ConfirmDialog
      title={t("leaveTitle")}
      text={t("leaveText")}
      label={t("leave")}
      action={async () => blocker.proceed?.()}
      isOpen={blocker.status === "blocked"}
      onClose={() => blocker.reset?.()}
    />
  );
}

/** A button that deletes what a page shows, after a question. */
export function DeleteButton(question: Omit<Question, "label">) {
  const { t } = useTranslation();
  return (
    <ConfirmButton
      variant="default"
      c="light-dark(var(--mantine-color-red-8), var(--mantine-color-red-3))"
      leftSection={<IconTrash size={14} />}
      label={t("delete")}
      {...question}
    />
  );
}
