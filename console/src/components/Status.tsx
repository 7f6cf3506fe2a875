import { Badge } from "@mantine/core";
import { useTranslation } from "react-i18next";

const COLORS: Record<string, string> = {
  finished: "teal",
  running: "blue",
  waiting: "orange",
  paused: "orange",
  failed: "red",
  cancelled: "gray",
  ok: "teal",
  disabled: "gray",
  away: "orange",
  quarantine: "orange",
  open: "red",
  half_open: "orange",
};

/** The status of a run or of a tool. */
export function Status({ value }: { value: string }) {
  const { t } = useTranslation();
  return (
    <Badge size="sm" variant="dot" color={COLORS[value] ?? "gray"} fw={500} miw="max-content">
      {t(`status.${value}`, value)}
    </Badge>
  );
}
