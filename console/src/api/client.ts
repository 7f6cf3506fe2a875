import type { components } from "./schema";

type Schemas = components["schemas"];
export type Session = Schemas["SessionResponse"];
export type Run = Schemas["RunResponse"];
export type Batch = Schemas["BatchResponse"];
export type Execution = Schemas["ExecutionResponse"];
export type Conversation = Schemas["ConversationResponse"];
export type ConversationDetail = Schemas["ConversationDetailResponse"];
export type AgentSpec = Schemas["AgentSpec"];
export type AgentWarning = Schemas["AgentWarningResponse"];
export type Agent = Schemas["AgentResponse"];
export type Skill = Schemas["SkillResponse"];
export type ToolVersion = Schemas["ToolVersionResponse"];
export type Usage = Schemas["UsageResponse"];
export type ToolHealth = Schemas["ToolHealthResponse"];
export type Failure = Schemas["FailureResponse"];
export type ApiKey = Schemas["KeyResponse"];
export type Approval = Schemas["ApprovalResponse"];
export type DatabaseSchema = Schemas["SchemaResponse"];
export type QueryResult = Schemas["QueryResponse"];
export type Database = Schemas["DatabaseResponse"];
export type ImportOutcome = Schemas["ImportResponse"];
export type Semantics = Schemas["SemanticsResponse"];
export type Example = Schemas["ExampleResponse"];
export type Message = Schemas["MessageResponse"];
export type MessagePart = Partial<Schemas["MessagePart"]>;
export type Pin = Schemas["PinResponse"];
export type ToolSpec =
  | Schemas["FunctionToolSpec"]
  | Schemas["HttpToolSpec"]
  | Schemas["McpServerSpec"]
  | Schemas["SkillSpec"];
export type Page<T> = { items: T[]; next: string };

/** The result of a tool call, the same for every type of tool. */
export type CallResult = {
  success: boolean;
  tool: string;
  output: unknown;
  content: string;
  media?: MessagePart[];
  error: { kind: string; message: string } | null;
  execution_id: string;
  meta: { latency_ms: number; attempts: number; cached: boolean; cut: number };
};

/** An error response of the service, or an unreachable service (status 0). */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly kind: string,
    message: string,
    readonly fields: { field: string; problem: string }[] = [],
  ) {
    super(message);
  }
}

export type RequestOptions = {
  method?: string;
  body?: unknown;
  text?: { content: string; type: string };
  headers?: Record<string, string>;
  signal?: AbortSignal;
};

const unauthorizedListeners = new Set<() => void>();

/** Call `listener` whenever a request is rejected because it has no valid key. */
export function onUnauthorized(listener: () => void): () => void {
  unauthorizedListeners.add(listener);
  return () => unauthorizedListeners.delete(listener);
}

/** Send a request and return its response; throws ApiError for any status but 2xx. */
export async function request(path: string, options: RequestOptions = {}): Promise<Response> {
  const headers: Record<string, string> = { "X-Opposable-Console": "1", ...options.headers };
  let body: string | undefined;
  if (options.text) {
    headers["Content-Type"] = options.text.type;
    body = options.text.content;
  } else if (options.body !== undefined) {
    headers["Content-Type"] = "application/json";
    body = JSON.stringify(options.body);
  }
  let response: Response;
  try {
    response = await fetch(path, { method: options.method ?? "GET", headers, body, signal: options.signal });
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new ApiError(0, "unreachable", "");
  }
  if (response.ok) return response;
  if (response.status === 401 && path !== "/api/session")
    for (const listener of unauthorizedListeners) listener();
  throw await toApiError(response);
}

/** Send a request and return the JSON of its response. */
export async function api<T>(path: string, options: RequestOptions = {}): Promise<T> {
  const response = await request(path, options);
  return (response.status === 204 ? undefined : await response.json()) as T;
}

async function toApiError(response: Response): Promise<ApiError> {
  try {
    const { error } = await response.json();
    return new ApiError(response.status, error.kind, error.message, error.fields ?? []);
  } catch {
    return new ApiError(response.status, "error", `${response.status} ${response.statusText}`);
  }
}

/** Return a path with the query parameters that are not empty. */
export function withQuery(
  path: string,
  parameters: Record<string, string | number | boolean | undefined>,
): string {
  const entries = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== "");
  const query = new URLSearchParams(entries.map(([name, value]) => [name, String(value)]));
  return query.size ? `${path}?${query}` : path;
}

/** Save text as a file of the user. */
export function saveFile(name: string, content: BlobPart, type = "text/plain"): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Return a random id, also on pages that are not a secure context. */
export function randomId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}
