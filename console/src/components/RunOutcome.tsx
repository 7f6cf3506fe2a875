import { Alert, Text } from "@mantine/core";
import { useTranslation } from "react-i18next";
import { findKind } from "../api/errors";
import type { RunState } from "../api/runState";

const ENDS = ["no_answer", "repeats", "length", "content_filter", "incomplete"] as const;

/** Why a run ended without a complete answer: it failed, was stopped, made no progress, or reached a limit. */
export function RunOutcome({ run }: { run: Pick<RunState, "phase" | "error" | "errorKind" | "reason"> }) {
  const { t } = useTranslation();
  if (run.phase === "failed") {
    const kind = findKind(run.errorKind);
    return (
      <Alert color="red" variant="light" title={t("chat.failed")} role="alert">
        <Text size="sm">{t(kind ? `errors.${kind}` : "run.lost")}</Text>
        {run.error && (
          <Text size="sm" c="dimmed" style={{ overflowWrap: "anywhere" }}>
            {run.error}
          </Text>
        )}
      </Alert>
    );
  }
  if (run.phase === "cancelled") {
    return (
      <Text size="sm" c="dimmed">
        {t("chat.stopped")}
      </Text>
    );
  }
  if (run.phase !== "finished" || run.reason === "answer" || !run.reason) return null;
  const end = ENDS.find((reason) => reason === run.reason);
  return (
    <Alert color="orange" variant="light">
      {end ? t(`run.end.${end}`) : t("run.limit", { limit: t(`limit.${run.reason}`, run.reason) })}
    </Alert>
  );
}
