import {
  infiniteQueryOptions,
  QueryClient,
  queryOptions,
  useMutation,
  useQuery,
} from "@tanstack/react-query";
import {
  type Agent,
  ApiError,
  type ApiKey,
  type Approval,
  api,
  type Conversation,
  type ConversationDetail,
  type Database,
  type Example,
  type Page,
  type Run,
  type Session,
  type Skill,
  type ToolHealth,
  type ToolSpec,
  withQuery,
} from "./client";

/** The agent with a database, or the URL of one. */
export type DataSource = { agent: string; database: string };

/** Return the header that selects the agent of a source. */
export function getSourceHeaders(source: DataSource | null): Record<string, string> {
  return source?.agent ? { "X-Agent-ID": encodeURIComponent(source.agent) } : {};
}

/** Return whether the signed-in key has a scope. */
export function useScope(scope: string): boolean {
  const scopes = useQuery(sessionQuery).data?.scopes ?? [];
  return scopes.includes(scope) || scopes.includes("admin");
}

/** Return all items of a list of the API, page by page. */
async function listAll<T>(path: string): Promise<Page<T>> {
  const items: T[] = [];
  let next = "";
  do {
    const page = await api<Page<T>>(withQuery(path, { limit: 1000, after: next }));
    items.push(...page.items);
    next = page.next;
  } while (next);
  return { items, next };
}

export const queryClient = new QueryClient({
  defaultOptions: {
    // A service on this machine answers without a network too, and a lost network must be shown as an error.
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: 5_000,
      retry: (count, error) =>
        count < 2 && error instanceof ApiError && (error.status === 0 || error.status >= 500),
    },
  },
});

export const sessionQuery = queryOptions({
  queryKey: ["session"],
  queryFn: () => api<Session>("/api/session"),
  staleTime: 60_000,
});
export const agentsQuery = queryOptions({
  queryKey: ["agents"],
  queryFn: () => listAll<Agent>("/api/agents"),
});

/** Return the agents by name, as the options of a choice; none if the signed-in key may not list them. */
export function useAgentOptions(): { value: string; label: string }[] {
  const agents = useQuery({ ...agentsQuery, enabled: useScope("tools:read") });
  return (agents.data?.items ?? []).map(({ agent }) => ({
    value: agent.agent_id,
    label: agent.name || agent.agent_id,
  }));
}

export const toolsQuery = queryOptions({
  queryKey: ["tools"],
  queryFn: () => listAll<ToolSpec>("/api/tools"),
});
export const skillsQuery = queryOptions({
  queryKey: ["skills"],
  queryFn: async () => (await api<{ skills: Skill[] }>("/skills")).skills,
});
export const healthQuery = (toolId: string) =>
  queryOptions({
    queryKey: ["tools", toolId, "health"],
    queryFn: () => api<ToolHealth>(`/api/tools/${encodeURIComponent(toolId)}/health`),
    refetchInterval: 5_000,
  });
/** The conversations that this page started, by id; the server lists one when its first run has ended. */
export const startedConversations = new Map<string, Conversation>();
export const conversationsQuery = queryOptions({
  queryKey: ["conversations"],
  queryFn: async () => {
    const page = await listAll<Conversation>("/agent/conversations");
    for (const { conversation_id } of page.items) startedConversations.delete(conversation_id);
    return { ...page, items: [...[...startedConversations.values()].reverse(), ...page.items] };
  },
});
export const approvalsQuery = queryOptions({
  queryKey: ["approvals"],
  queryFn: () => api<Page<Approval>>("/api/approvals?status=pending&limit=1000"),
});
export const keysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: () => api<Page<ApiKey>>("/api/keys"),
});
export const databasesQuery = queryOptions({
  queryKey: ["databases"],
  queryFn: () => api<Page<Database>>("/api/databases"),
});
export const examplesQuery = (source: DataSource) =>
  queryOptions({
    queryKey: ["examples", source],
    queryFn: () =>
      api<Page<Example>>(withQuery("/api/databases/examples", { database: source.database }), {
        headers: getSourceHeaders(source),
      }),
    staleTime: 60_000,
  });
export const conversationQuery = (conversationId: string) =>
  queryOptions({
    queryKey: ["conversation", conversationId],
    queryFn: () => api<ConversationDetail>(`/agent/conversations/${encodeURIComponent(conversationId)}`),
  });
/** How many turns of a conversation are loaded at once: the events of each need a request. */
const SHOWN_TURNS = 20;

/** The runs of a conversation, the latest first, page by page. */
export const conversationRunsQuery = (conversationId: string) =>
  infiniteQueryOptions({
    queryKey: ["runs", "conversation", conversationId],
    queryFn: ({ pageParam }) =>
      api<Page<Run>>(
        withQuery("/api/runs", { conversation_id: conversationId, after: pageParam, limit: SHOWN_TURNS }),
      ),
    initialPageParam: "",
    getNextPageParam: (page) => page.next || undefined,
  });

/** Stop a run. */
export const stopRun = (runId: string) =>
  api(`/api/runs/${encodeURIComponent(runId)}/cancel`, { method: "POST" });

/** A mutation that stops a run. */
export const useStopRun = (runId: string) => useMutation({ mutationFn: () => stopRun(runId) });
