import { ActionIcon, Box, FileButton, Group, Select, Text, Textarea, Tooltip } from "@mantine/core";
import { IconArrowUp, IconPaperclip, IconPlayerStopFilled } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import {
  type DragEvent,
  type FormEvent,
  type KeyboardEvent,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
} from "react";
import { useTranslation } from "react-i18next";
import { LiveRun } from "../api/liveRuns";
import {
  ATTACHMENT_TYPES,
  type Attachment,
  attachmentsToMedia,
  MAX_ATTACHMENT_BYTES,
  MAX_TOTAL_BYTES,
  readAttachment,
} from "../api/media";
import { agentsQuery, sessionQuery, useAgentOptions, useScope, useStopRun } from "../api/queries";
import { isSendKey } from "./keys";
import { Media } from "./Media";
import { ErrorAlert } from "./States";

const NO_RUN = new LiveRun();
/** What was typed and not sent, by conversation. */
const drafts = new Map<string, string>();

type Props = {
  conversationId: string;
  draft: string;
  agent: string;
  active: LiveRun | undefined;
  /** Undefined while it is not known which agent answers. */
  onSend: ((text: string, attachments: Attachment[]) => void) | undefined;
};

/** The field of the next message, with its images and files, and the agent and the model that answer. Enter sends. */
export function Composer({ conversationId, draft, agent, active, onSend }: Props) {
  const { t } = useTranslation();
  const [text, setText] = useState(draft || (drafts.get(conversationId) ?? ""));
  useEffect(() => {
    drafts.set(conversationId, text);
  }, [conversationId, text]);
  const run = useSyncExternalStore((active ?? NO_RUN).subscribe, (active ?? NO_RUN).getState);
  const isActive = active !== undefined && (run.phase === "running" || run.phase === "waiting");
  const stop = useStopRun(run.runId);
  const { attachments, error, add, remove, clear } = useAttachments(agent);

  const send = (event?: FormEvent) => {
    event?.preventDefault();
    if (!text.trim() || isActive || !onSend) return;
    onSend(text.trim(), attachments);
    setText("");
    drafts.delete(conversationId);
    clear();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (isSendKey(event)) send(event);
  };

  return (
    <Box px="md" pb="md">
      {isActive && <ErrorAlert error={stop.error} />}
      <Box
        component="form"
        onSubmit={send}
        className="message-list bordered composer"
        p={8}
        onDragOver={(event: DragEvent) => event.preventDefault()}
        onDrop={(event: DragEvent) => {
          event.preventDefault();
          add([...event.dataTransfer.files]);
        }}
      >
        {attachments.length > 0 && (
          <Box px={6} pb={6}>
            <Media parts={attachmentsToMedia(attachments)} onRemove={remove} />
          </Box>
        )}
        {error && (
          <Text size="xs" c="red" px={6} pb={4} role="alert">
            {error}
          </Text>
        )}
        <Textarea
          variant="unstyled"
          autosize
          minRows={1}
          maxRows={10}
          px={6}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
          onPaste={(event) => {
            const files = [...event.clipboardData.files];
            if (files.length === 0) return;
            event.preventDefault();
            add(files);
          }}
          placeholder={t("chat.placeholder")}
          aria-label={t("chat.placeholder")}
          autoFocus
        />
        <Group justify="space-between" gap="xs" wrap="nowrap">
          <Group gap={6} wrap="nowrap" miw={0}>
            <AttachButton agent={agent} onFiles={add} />
            <ModelPicker agent={agent} />
          </Group>
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
                  onClick={() => stop.mutate()}
                  loading={stop.isPending}
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
                  disabled={!text.trim() || !onSend}
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

/** The attachments of the next message, and why a file cannot be one. */
function useAttachments(agent: string) {
  const { t } = useTranslation();
  const [attachments, setAttachments] = useState<Attachment[]>([]);
  const [error, setError] = useState("");
  const takesMedia = useTakesMedia(agent);
  const latest = useRef(attachments); // files may be added while others are read
  const change = (all: Attachment[]) => {
    latest.current = all;
    setAttachments(all);
  };
  const add = async (files: File[]) => {
    if (!takesMedia) return setError(t("media.textOnly"));
    const wrong = files.find((file) => !ATTACHMENT_TYPES.includes(file.type));
    if (wrong) return setError(t("media.wrongType", { name: wrong.name }));
    if (files.some((file) => file.size > MAX_ATTACHMENT_BYTES)) return setError(t("media.tooLarge"));
    const added = await Promise.all(files.map(readAttachment));
    const all = [...latest.current, ...added];
    const total = all.reduce((sum, { url }) => sum + url.length * 0.75, 0);
    if (total > MAX_TOTAL_BYTES) return setError(t("media.tooLarge"));
    setError("");
    change(all);
  };
  const remove = (index: number) => change(attachments.filter((_, other) => other !== index));
  return { attachments, error, add, remove, clear: () => change([]) };
}

function AttachButton({ agent, onFiles }: { agent: string; onFiles: (files: File[]) => void }) {
  const { t } = useTranslation();
  const takesMedia = useTakesMedia(agent);
  const label = t(takesMedia ? "media.attach" : "media.textOnly");
  return (
    <FileButton onChange={onFiles} accept={ATTACHMENT_TYPES.join(",")} multiple disabled={!takesMedia}>
      {(props) => (
        <Tooltip label={label}>
          <ActionIcon
            {...props}
            aria-label={label}
            data-disabled={!takesMedia || undefined}
            aria-disabled={!takesMedia}
          >
            <IconPaperclip size={17} />
          </ActionIcon>
        </Tooltip>
      )}
    </FileButton>
  );
}

/** Return whether the model of the next message accepts images and files. */
function useTakesMedia(agent: string): boolean {
  const { model = "" } = useSearch({ strict: false });
  const session = useQuery(sessionQuery).data;
  const agents = useQuery({ ...agentsQuery, enabled: useScope("tools:read") });
  const spec = agents.data?.items.find((item) => item.agent.agent_id === (agent || "default"))?.agent;
  const profile = session?.profiles[model || spec?.model || session.models[0] || ""];
  return profile === undefined || profile.images || profile.image_placeholders;
}

function ModelPicker({ agent }: { agent: string }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  const { model = "" } = useSearch({ strict: false });
  const session = useQuery(sessionQuery).data;
  const choose = (change: { agent?: string; model?: string }) =>
    navigate({
      to: ".",
      search: (previous: object) => ({ ...previous, message: undefined, ...change }),
      replace: true,
    });
  const agentOptions = useAgentOptions();
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
          onChange={(value) => choose({ agent: value ?? undefined })}
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
