import { QueryClient, queryOptions } from "@tanstack/react-query";
import {
  type Agent,
  ApiError,
  type ApiKey,
  api,
  type Conversation,
  type Database,
  type Page,
  type Run,
  type Session,
  type Skill,
  type ToolSpec,
  withQuery,
} from "./client";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
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
  queryFn: () => api<Page<Agent>>("/api/agents?limit=1000"),
});
export const toolsQuery = queryOptions({
  queryKey: ["tools"],
  queryFn: () => api<Page<ToolSpec>>("/api/tools?limit=1000"),
});
export const skillsQuery = queryOptions({
  queryKey: ["skills"],
  queryFn: async () => (await api<{ skills: Skill[] }>("/skills")).skills,
});
export const conversationsQuery = queryOptions({
  queryKey: ["conversations"],
  queryFn: () => api<Page<Conversation>>("/agent/conversations?limit=500"),
});
export const keysQuery = queryOptions({
  queryKey: ["keys"],
  queryFn: () => api<Page<ApiKey>>("/api/keys"),
});
export const databasesQuery = queryOptions({
  queryKey: ["databases"],
  queryFn: () => api<Page<Database>>("/api/databases"),
});
export const conversationRunsQuery = (conversationId: string) =>
  queryOptions({
    queryKey: ["runs", "conversation", conversationId],
    queryFn: () => api<Page<Run>>(withQuery("/api/runs", { conversation_id: conversationId, limit: 200 })),
  });
