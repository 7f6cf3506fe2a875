import { ActionIcon, Box, Group, Select, Text, Textarea, Tooltip } from "@mantine/core";
import { IconArrowUp, IconPlayerStopFilled } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { type FormEvent, type KeyboardEvent, useState, useSyncExternalStore } from "react";
import { useTranslation } from "react-i18next";
import { api } from "../api/client";
import { LiveRun } from "../api/liveRuns";
import { agentsQuery, sessionQuery } from "../api/queries";

const NO_RUN = new LiveRun();

type Props = { draft: string; active: LiveRun | undefined; onSend: (text: string) => void };

/** The field of the next message, with the agent and the model that answer. Enter sends. */
export function Composer({ draft, active, onSend }: Props) {
  const { t } = useTranslation();
  const [text, setText] = useState(draft);
  const run = useSyncExternalStore((active ?? NO_RUN).subscribe, (active ?? NO_RUN).getState);
  const isActive = active !== undefined && (run.phase === "running" || run.phase === "waiting");
  const [isStopping, setStopping] = useState(false);

  const send = (event?: FormEvent) => {
    event?.preventDefault();
    if (!text.trim() || isActive) return;
    onSend(text.trim());
    setText("");
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) send(event);
  };
  const stop = async () => {
    setStopping(true);
    try {
      await api(`/api/runs/${run.runId}/cancel`, { method: "POST" });
    } finally {
      setStopping(false);
    }
  };

  return (
    <Box px="md" pb="md">
      <Box component="form" onSubmit={send} className="message-list bordered composer" p={8}>
        <Textarea
          variant="unstyled"
          autosize
          minRows={1}
          maxRows={10}
          px={6}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          placeholder={t("chat.placeholder")}
          aria-label={t("chat.placeholder")}
          autoFocus
        />
        <Group justify="space-between" gap="xs" wrap="nowrap">
          <ModelPicker />
          <Group gap="xs" wrap="nowrap">
            <Text size="xs" c="dimmed" visibleFrom="sm">
              {t("chat.hint")}
            </Text>
            {isActive ? (
              <Tooltip label={t("stop")}>
                <ActionIcon
                  variant="filled"
                  color="red.8"
                  radius="xl"
                  onClick={stop}
                  loading={isStopping}
                  disabled={!run.runId}
                  aria-label={t("stop")}
                >
                  <IconPlayerStopFilled size={15} />
                </ActionIcon>
              </Tooltip>
            ) : (
              <Tooltip label={t("send")}>
                <ActionIcon
                  variant="filled"
                  color="brand"
                  radius="xl"
                  type="submit"
                  disabled={!text.trim()}
                  aria-label={t("send")}
                >
                  <IconArrowUp size={17} />
                </ActionIcon>
              </Tooltip>
            )}
          </Group>
        </Group>
      </Box>
    </Box>
  );
}

function ModelPicker() {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { agent = "", model = "" } = useSearch({ strict: false });
  const session = useQuery(sessionQuery).data;
  const agents = useQuery({ ...agentsQuery, enabled: session?.scopes.some((scope) => scope !== "chat") });
  const choose = (change: { agent?: string; model?: string }) =>
    navigate({
      to: ".",
      search: (previous: object) => ({ ...previous, message: undefined, ...change }),
      replace: true,
    });
  const agentOptions = (agents.data?.items ?? []).map(({ agent: spec }) => ({
    value: spec.agent_id,
    label: spec.name || spec.agent_id,
  }));
  const models = session?.models ?? [];
  return (
    <Group gap={6} wrap="nowrap" miw={0}>
      {agentOptions.length > 0 && (
        <Select
          size="xs"
          w={150}
          aria-label={t("chat.agent")}
          data={agentOptions}
          value={agent || (agentOptions.some((option) => option.value === "default") ? "default" : null)}
          placeholder={t("chat.agent")}
          onChange={(value) => choose({ agent: value === "default" ? undefined : (value ?? undefined) })}
          allowDeselect={false}
          searchable={agentOptions.length > 8}
        />
      )}
      {models.length > 1 && (
        <Select
          size="xs"
          w={170}
          aria-label={t("chat.model")}
          data={[
            { value: "", label: t("chat.agentModel") },
            ...models.map((name) => ({ value: name, label: name })),
          ]}
          value={model}
          onChange={(value) => choose({ model: value || undefined })}
          allowDeselect={false}
          searchable={models.length > 8}
        />
      )}
    </Group>
  );
}
