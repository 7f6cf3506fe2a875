import { ActionIcon, Box, Button, Group, Stack, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconHistory, IconMessageCircle, IconRefresh } from "@tabler/icons-react";
import { useInfiniteQuery, useQuery, useQueryClient } from "@tanstack/react-query";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useLayoutEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { ApiError, type Message, type Run, randomId } from "../api/client";
import { getLiveRun, LiveRun, useLiveRun } from "../api/liveRuns";
import { type Attachment, attachmentsToMedia, type MediaPart, toAttachments, toMedia } from "../api/media";
import {
  conversationQuery,
  conversationRunsQuery,
  conversationsQuery,
  startedConversations,
} from "../api/queries";
import { ActionButton } from "../components/ActionButton";
import { Composer } from "../components/Composer";
import { ConversationList } from "../components/ConversationList";
import { ButtonLink, PageLink } from "../components/links";
import { Media } from "../components/Media";
import { RunItems } from "../components/RunItems";
import { RunOutcome } from "../components/RunOutcome";
import { Empty, ErrorAlert, Loading } from "../components/States";
import { StoredMessages } from "../components/StoredMessages";
import { useTitle } from "../components/title";
import { formatNumber } from "../format";

const ConversationDrawer = lazy(() => import("../components/ConversationDrawer"));

type Turn = {
  key: string;
  task: string;
  media: MediaPart[];
  run: LiveRun;
  agent_id: string;
  /** The run had ended when it was listed: it is replayed. */
  isReplayed: boolean;
};

/** Turns that this page started, by conversation: the server lists a new run only after a moment. */
const startedTurns = new Map<string, Turn[]>();

function mergeTurns(conversationId: string, runs: Run[], messages: Message[]): Turn[] {
  const started = startedTurns.get(conversationId) ?? [];
  const startedIds = new Set(started.map((turn) => turn.run.state.runId));
  // A run may be listed before the page that started it knows its id.
  const isStarting = (run: Run) =>
    !run.ended_at && started.some((turn) => !turn.run.state.runId && turn.task === run.task);
  const listed = runs
    .filter((run) => !startedIds.has(run.run_id) && !isStarting(run))
    .map((run) => ({
      key: run.run_id,
      task: run.task ?? "",
      media: [] as MediaPart[],
      run: getLiveRun(run.run_id),
      agent_id: run.agent_id ?? "",
      isReplayed: Boolean(run.ended_at),
      startedAt: run.started_at,
    }))
    .sort((a, b) => a.startedAt.localeCompare(b.startedAt));
  return [...addMedia(listed, messages), ...started];
}

/** Add the images and files of the stored messages, the latest first. A run that failed has no stored message. */
function addMedia(turns: Turn[], messages: Message[]): Turn[] {
  const stored = messages.filter((message) => message.role === "user");
  const withMedia = [...turns].reverse().map((turn) => {
    const index = stored.map((message) => message.content).lastIndexOf(turn.task);
    const [message] = index < 0 ? [] : stored.splice(index);
    return message?.parts?.length ? { ...turn, media: toMedia(message.parts) } : turn;
  });
  return withMedia.reverse();
}

export function ChatPage() {
  const { t } = useTranslation();
  const { conversationId = "" } = useParams({ strict: false });
  const { agent: chosenAgent = "", model = "", message = "" } = useSearch({ strict: false });
  const navigate = useNavigate();
  const client = useQueryClient();
  const [isListOpen, { open, close }] = useDisclosure();
  const hasOpenedList = useRef(false);
  hasOpenedList.current ||= isListOpen;
  const [, redraw] = useState(0);
  const conversations = useQuery(conversationsQuery);
  const runs = useInfiniteQuery({ ...conversationRunsQuery(conversationId), enabled: conversationId !== "" });
  const listedRuns = runs.data?.pages.flatMap((page) => page.items);
  const conversation = conversations.data?.items.find((item) => item.conversation_id === conversationId);
  useTitle(conversation?.title || t("nav.chat"));

  const hasEndedRun = listedRuns?.some((run) => run.ended_at) ?? false; // its messages are stored then
  const hasNoRuns = listedRuns?.length === 0 && !startedTurns.has(conversationId);
  const stored = useQuery({
    ...conversationQuery(conversationId),
    enabled: hasEndedRun || hasNoRuns,
    retry: false,
  });
  const isMissing = hasNoRuns && stored.error instanceof ApiError && stored.error.status === 404;
  const messages = stored.data?.messages ?? [];
  // An opened conversation goes on with its last agent: another one may have other tools and need no approval.
  const last = startedTurns.get(conversationId)?.at(-1) ?? listedRuns?.[0] ?? stored.data;
  const agent = chosenAgent || (last?.agent_id ?? "");
  const isAgentKnown = chosenAgent !== "" || !conversationId || last;
  const turns = conversationId ? mergeTurns(conversationId, listedRuns ?? [], messages) : [];
  const active = turns.at(-1);

  const send = (text: string, attachments: Attachment[] = []) => {
    const id = conversationId || randomId();
    const run = new LiveRun();
    const turn = {
      key: randomId(),
      task: text,
      media: attachmentsToMedia(attachments),
      run,
      agent_id: agent,
      isReplayed: false,
    };
    startedTurns.set(id, [...(startedTurns.get(id) ?? []), turn]);
    const body = { message: text, attachments, conversation_id: id, detach: true, ...(model && { model }) };
    const headers: Record<string, string> = agent ? { "X-Agent-ID": encodeURIComponent(agent) } : {};
    run.start("/api/agent", { body, headers }).catch(() => undefined);
    redraw((count) => count + 1);
    if (!conversationId) {
      const title = text.slice(0, 80);
      startedConversations.set(id, { conversation_id: id, agent_id: agent, title, messages_count: 0 });
      client.invalidateQueries({ queryKey: conversationsQuery.queryKey });
      const search = { agent: agent || undefined, model: model || undefined };
      navigate({ to: "/chat/$conversationId", params: { conversationId: id }, search });
    }
  };

  return (
    <Group gap={0} wrap="nowrap" align="stretch" h={{ base: "calc(100dvh - 48px)", sm: "100dvh" }}>
      <Box
        component="aside"
        w={248}
        visibleFrom="md"
        className="panel"
        aria-label={t("chat.list")}
        style={SIDE}
      >
        <ConversationList current={conversationId} />
      </Box>
      {hasOpenedList.current && (
        <Suspense>
          <ConversationDrawer current={conversationId} isOpen={isListOpen} onClose={close} />
        </Suspense>
      )}
      <Stack flex={1} gap={0} miw={0} h="100%">
        <Group
          hiddenFrom="md"
          px="sm"
          py={6}
          justify="space-between"
          style={{ borderBottom: "1px solid var(--line)" }}
        >
          <Text size="sm" fw={600} className="truncate" flex={1}>
            {conversation?.title || t("chat.new")}
          </Text>
          <ActionIcon onClick={open} aria-label={t("chat.list")}>
            <IconHistory size={18} />
          </ActionIcon>
        </Group>
        <Messages
          key={conversationId}
          turns={turns}
          isLoading={runs.isLoading}
          earlier={
            runs.hasNextPage ? { load: runs.fetchNextPage, isLoading: runs.isFetchingNextPage } : undefined
          }
          conversationId={conversationId}
          onRetry={send}
        />
        <ErrorAlert error={runs.error} onRetry={() => runs.refetch()} />
        {!isMissing && (
          <Composer
            key={`${conversationId}-${message}`}
            conversationId={conversationId}
            draft={message}
            agent={agent}
            active={active?.isReplayed ? undefined : active?.run}
            onSend={isAgentKnown ? send : undefined}
          />
        )}
      </Stack>
    </Group>
  );
}

const SIDE = { borderRight: "1px solid var(--line)", flexShrink: 0, overflow: "hidden" } as const;

type MessagesProps = {
  turns: Turn[];
  isLoading: boolean;
  earlier: { load: () => void; isLoading: boolean } | undefined;
  conversationId: string;
  onRetry: Retry;
};
type Retry = (task: string, attachments: Attachment[]) => void;

function Messages({ turns, isLoading, earlier, conversationId, onRetry }: MessagesProps) {
  const { t } = useTranslation();
  const sentCount = startedTurns.get(conversationId)?.length ?? 0;
  const { containerRef, contentRef, onScroll, holdPosition } = useStickyScroll(sentCount, turns[0]?.key);
  const loadEarlier = () => {
    holdPosition();
    earlier?.load();
  };
  return (
    <Box
      ref={containerRef}
      onScroll={onScroll}
      flex={1}
      style={{ overflowY: "auto" }}
      px="md"
      tabIndex={0}
      aria-label={t("chat.messages")}
      role="log"
    >
      <div ref={contentRef}>
        {isLoading && turns.length === 0 && <Loading />}
        {!isLoading &&
          turns.length === 0 &&
          (conversationId ? <StoredMessages conversationId={conversationId} /> : <Welcome />)}
        <Stack className="message-list" gap="lg" py="lg">
          {earlier && (
            <ActionButton
              variant="default"
              size="xs"
              w="fit-content"
              onClick={loadEarlier}
              loading={earlier.isLoading}
            >
              {t("chat.earlier")}
            </ActionButton>
          )}
          {turns.map((turn, index) => (
            <TurnView key={turn.key} turn={turn} isLast={index === turns.length - 1} onRetry={onRetry} />
          ))}
        </Stack>
      </div>
    </Box>
  );
}

/** Scroll with new content while the end is visible, and to a message that was sent. Turns added before the first one move nothing. */
function useStickyScroll(sentCount: number, firstKey: string | undefined) {
  const containerRef = useRef<HTMLDivElement>(null);
  const contentRef = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const position = useRef(0);
  const distanceToEnd = useRef<number | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a message that this page sends is shown
  useLayoutEffect(() => {
    isAtEnd.current = true;
  }, [sentCount]);
  const holdPosition = () => {
    const container = containerRef.current;
    if (!container) return;
    isAtEnd.current = false;
    distanceToEnd.current = container.scrollHeight - container.scrollTop;
  };
  // biome-ignore lint/correctness/useExhaustiveDependencies: another first turn means that earlier ones were added
  useLayoutEffect(() => {
    const container = containerRef.current;
    if (container && distanceToEnd.current !== null)
      container.scrollTop = container.scrollHeight - distanceToEnd.current;
    distanceToEnd.current = null;
  }, [firstKey]);
  useEffect(() => {
    const [container, content] = [containerRef.current, contentRef.current];
    if (!container || !content) return;
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) container.scrollTop = container.scrollHeight;
    });
    observer.observe(content);
    return () => observer.disconnect();
  }, []);
  const onScroll = () => {
    const container = containerRef.current;
    if (!container) return;
    const { scrollTop, scrollHeight, clientHeight } = container;
    // Content may grow before the event of the last scroll arrives: only scrolling up leaves the end.
    isAtEnd.current =
      scrollHeight - scrollTop - clientHeight < 60 || (isAtEnd.current && scrollTop >= position.current);
    position.current = scrollTop;
  };
  return { containerRef, contentRef, onScroll, holdPosition };
}

function Welcome() {
  const { t } = useTranslation();
  return (
    <Box pt="10vh">
      <Empty icon={<IconMessageCircle size={36} stroke={1.3} />} title={t("chat.welcome")}>
        <Stack align="center" gap="sm">
          <Text c="dimmed" size="sm" ta="center">
            {t("chat.welcomeText")}
          </Text>
          <Group gap="xs" justify="center">
            {(["chat.example1", "chat.example2", "chat.example3"] as const).map((example) => (
              <ButtonLink
                key={example}
                size="xs"
                variant="default"
                to="/chat"
                search={{ message: t(example) }}
              >
                {t(example)}
              </ButtonLink>
            ))}
          </Group>
        </Stack>
      </Empty>
    </Box>
  );
}

function TurnView({ turn, isLast, onRetry }: { turn: Turn; isLast: boolean; onRetry: Retry }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const run = useLiveRun(turn.run);
  const isActive = run.phase === "running" || run.phase === "waiting";
  const wasActive = useRef(isActive);
  useEffect(() => {
    const hasEnded = wasActive.current && !isActive && !turn.isReplayed;
    if (hasEnded) client.invalidateQueries({ queryKey: conversationsQuery.queryKey });
    wasActive.current = isActive;
  }, [isActive, turn.isReplayed, client]);
  return (
    <Stack gap="sm" component="article" aria-busy={isActive}>
      <div className="user-message">
        {turn.media.length > 0 && <Media parts={turn.media} />}
        {turn.task}
      </div>
      <RunItems items={run.items} isActive={isActive} />
      {isActive && run.connection === "retrying" && (
        <Text size="xs" c="var(--mantine-color-orange-light-color)" role="status">
          {t("chat.reconnecting")}
        </Text>
      )}
      {run.phase === "running" && run.connection === "open" && (
        <span className="caret" role="status" aria-label={t(turn.isReplayed ? "loading" : "chat.writing")} />
      )}
      <RunOutcome run={run} />
      {!isActive && (
        <Group gap="xs">
          {isLast && (
            <Button
              size="compact-xs"
              variant="subtle"
              color="gray"
              leftSection={<IconRefresh size={13} />}
              onClick={() => onRetry(turn.task, toAttachments(turn.media))}
            >
              {t("retry")}
            </Button>
          )}
          {run.runId && (
            <PageLink to="/runs/$runId" params={{ runId: run.runId }} size="xs" c="dimmed">
              {t("chat.details")} · {formatNumber(run.usage.input_tokens + run.usage.output_tokens)}{" "}
              {t("tokens")}
            </PageLink>
          )}
        </Group>
      )}
    </Stack>
  );
}
