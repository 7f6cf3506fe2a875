import { Affix, Button, CloseButton, Group, Paper, Progress, Stack, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { conversationsQuery, useScope } from "../api/queries";

const STORAGE_KEY = "opposable-tour";

/** Return the numbers of the steps that the key allows, and a function that starts the tour again. */
export function useTour(): { steps: number[]; start: () => void } {
  const allowed = [useScope("chat"), useScope("tools:write"), useScope("admin")];
  const start = () => {
    localStorage.setItem(STORAGE_KEY, "0");
    location.assign("/");
  };
  return { steps: [1, 2, 3].filter((number) => allowed[number - 1]), start };
}

/** The steps of the first visit: ask the agent, try a tool, ask a database. */
export function Tour() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const [stored, setStored] = useState(() => localStorage.getItem(STORAGE_KEY) ?? "");
  const { steps } = useTour();
  // Without a stored position, the tour starts for a key that has no conversations.
  const conversations = useQuery({ ...conversationsQuery, enabled: stored === "" && steps.includes(1) });
  const isHidden = stored === "" && conversations.data?.items.length !== 0;
  const position = Number(stored);
  const step = steps[position];
  if (isHidden || step === undefined) return null;

  const store = (value: string) => {
    localStorage.setItem(STORAGE_KEY, value);
    setStored(value);
  };
  const go = () => {
    store(position + 1 < steps.length ? String(position + 1) : "done");
    if (step === 1) navigate({ to: "/chat", search: { message: t("chat.example1") } });
    if (step === 2)
      navigate({ to: "/tools/$toolId", params: { toolId: "calculator" }, search: { tab: "try" } });
    if (step === 3) navigate({ to: "/data", search: { database: "sample" } });
  };
  return (
    <Affix position={{ bottom: 124, right: 20 }} zIndex={90}>
      <Paper withBorder shadow="md" p="md" w={300} component="section" aria-label={t("tour.title")}>
        <Stack gap="xs">
          <Group justify="space-between" wrap="nowrap">
            <Text size="xs" c="dimmed">
              {t("tour.title")} · {position + 1}/{steps.length}
            </Text>
            <CloseButton size="sm" aria-label={t("tour.close")} onClick={() => store("done")} />
          </Group>
          <Progress value={((position + 1) / steps.length) * 100} size={3} aria-label={t("tour.title")} />
          <Text fw={600}>{t(`tour.step${step}`)}</Text>
          <Text size="sm" c="dimmed">
            {t(`tour.text${step}`)}
          </Text>
          <Group justify="flex-end" gap="xs">
            <Button size="xs" onClick={go}>
              {t(`tour.go${step}`)}
            </Button>
          </Group>
        </Stack>
      </Paper>
    </Affix>
  );
}
