import { Badge } from "@mantine/core";
import { useTranslation } from "react-i18next";

const COLORS: Record<string, string> = {
  finished: "teal.8",
  running: "blue.8",
  waiting: "orange.9",
  paused: "orange.9",
  failed: "red.8",
  cancelled: "gray.7",
  ok: "teal.8",
  disabled: "gray.7",
  away: "orange.9",
  open: "red.8",
  half_open: "orange.9",
};

/** The status of a run or of a tool. */
export function Status({ value }: { value: string }) {
  const { t } = useTranslation();
  return (
    <Badge size="sm" variant="dot" color={COLORS[value] ?? "gray.7"} fw={500} miw="max-content">
      {t(`status.${value}`, value)}
    </Badge>
  );
}
