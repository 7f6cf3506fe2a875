import { Affix, Button, CloseButton, Group, Paper, Progress, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { conversationsQuery } from "../api/queries";

const STORAGE_KEY = "opposable-tour";
const STEPS = 3;

/** Three steps for the first visit: ask the agent, try a tool, ask a database. */
export function Tour() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [step, setStep] = useState(() => localStorage.getItem(STORAGE_KEY) ?? "");
  const conversations = useQuery({ ...conversationsQuery, enabled: step === "" });
  const isNew = step === "" && conversations.data?.items.length === 0;
  const position = step === "" ? 0 : Number(step);
  if (step === "done" || !(isNew || position > 0) || position >= STEPS) return null;

  const store = (value: string) => {
    localStorage.setItem(STORAGE_KEY, value);
    setStep(value);
  };
  const go = () => {
    store(position + 1 < STEPS ? String(position + 1) : "done");
    if (position === 0) navigate({ to: "/chat", search: { message: t("chat.example1") } });
    if (position === 1)
      navigate({ to: "/tools/$toolId", params: { toolId: "calculator" }, search: { tab: "try" } });
    if (position === 2) navigate({ to: "/data", search: { database: "sample" } });
  };
  return (
    <Affix position={{ bottom: 124, right: 20 }} zIndex={90}>
      <Paper withBorder shadow="md" p="md" w={300} component="section" aria-label={t("tour.title")}>
        <Stack gap="xs">
          <Group justify="space-between" wrap="nowrap">
            <Text size="xs" c="dimmed">
              {t("tour.title")} · {position + 1}/{STEPS}
            </Text>
            <CloseButton size="sm" aria-label={t("tour.close")} onClick={() => store("done")} />
          </Group>
          <Progress value={((position + 1) / STEPS) * 100} size={3} aria-label={t("tour.title")} />
          <Text fw={600}>{t(`tour.step${position + 1}`)}</Text>
          <Text size="sm" c="dimmed">
            {t(`tour.text${position + 1}`)}
          </Text>
          <Group justify="flex-end" gap="xs">
            <Button size="xs" onClick={go}>
              {t(`tour.go${position + 1}`)}
            </Button>
          </Group>
        </Stack>
      </Paper>
    </Affix>
  );
}
