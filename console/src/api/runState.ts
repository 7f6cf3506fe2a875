import type { MessagePart } from "./client";
import type { SseEvent } from "./sse";

export type Usage = { input_tokens: number; output_tokens: number };

export type CallItem = {
  type: "call";
  callId: string;
  name: string;
  arguments: Record<string, unknown>;
  output: string;
  approval?: {
    id: string;
    sha256: string;
    arguments: Record<string, unknown>;
    status: string;
    reason: string;
  };
  result?: {
    success: boolean;
    result: string;
    failure: string | null;
    seconds: number;
    attempts: number;
    cached: boolean;
    cut: number;
    repairs: string[];
    media?: MessagePart[];
  };
};

/** SQL that was considered for an answer: what it computes, and what speaks against it. */
export type Candidate = {
  sql: string;
  reason: string;
  source: string;
  diagnosis: string;
  is_chosen: boolean;
};

export type DataAnswer = {
  text: string;
  sql: string;
  columns: string[];
  rows: unknown[][];
  truncated: boolean;
  chart: { type: string; x: string; y: string } | null;
  assumptions: string[];
  corrections: string[];
  confidence: number | null;
  warnings: string[];
  /** What the answer is unsure of if its confidence is low. */
  doubts: string[];
  candidates: Candidate[];
  /** Why there is no answer; empty if there is one. */
  error: string;
};

export type RunItem =
  | { type: "text"; text: string }
  | { type: "thinking"; text: string }
  | { type: "turn"; turn: number; finish: string; usage: Usage; calls: number }
  | { type: "decision"; action: string; reason: string }
  | CallItem;

export type RunPhase = "running" | "waiting" | "finished" | "failed" | "cancelled";

/** What the events of a run say so far. */
export type RunState = {
  phase: RunPhase;
  items: RunItem[];
  answer: string;
  reason: string;
  error: string;
  /** The kind of the error as the service or `describeError` spells it. */
  errorKind: string;
  usage: Usage;
  cost: number | null;
  data: DataAnswer | null;
};

export const NEW_RUN: RunState = {
  phase: "running",
  items: [],
  answer: "",
  reason: "",
  error: "",
  errorKind: "",
  usage: { input_tokens: 0, output_tokens: 0 },
  cost: null,
  data: null,
};

type Json = Record<string, unknown>;

/** Return the state after an event. Unknown events change nothing. */
export function reduceRun(state: RunState, { event, data }: SseEvent): RunState {
  const fields = (data ?? {}) as Json;
  switch (event) {
    case "":
      return typeof fields.content === "string" ? appendText(state, "text", fields.content) : state;
    case "commentary":
      return appendText(state, "text", String(fields.text ?? ""));
    case "thinking":
      return appendText(state, "thinking", String(fields.thinking ?? ""));
    case "model_replied":
      return addTurn(state, fields);
    case "tool_started":
      return startCall(state, fields);
    case "tool_delta":
      return updateCall(state, fields, (call) => ({
        ...call,
        output: call.output + String(fields.delta ?? ""),
      }));
    case "tool_finished":
      return updateCall(state, fields, (call) => ({
        ...call,
        result: fields as unknown as CallItem["result"],
      }));
    case "approval_needed":
      return { ...requestApproval(state, fields), phase: "waiting" };
    case "approval_decided":
      return { ...decideApproval(state, fields), phase: "running" };
    case "decided":
      return addItem(state, {
        type: "decision",
        action: String(fields.action),
        reason: String(fields.reason),
      });
    case "data_answered":
      return {
        ...state,
        data: { warnings: [], doubts: [], candidates: [], error: "", ...fields } as unknown as DataAnswer,
      };
    case "run_finished":
      return finishRun(state, fields);
    case "error":
      return failRun(state, (fields.error ?? fields) as Json);
    default:
      return state;
  }
}

function addItem(state: RunState, item: RunItem): RunState {
  return { ...state, items: [...state.items, item] };
}

function appendText(state: RunState, type: "text" | "thinking", text: string): RunState {
  const last = state.items.at(-1);
  if (last?.type !== type) return addItem(state, { type, text });
  return { ...state, items: [...state.items.slice(0, -1), { type, text: last.text + text }] };
}

/** Add the end of a model turn before the texts that the model wrote in it. */
function addTurn(state: RunState, fields: Json): RunState {
  const usage = toUsage(fields.usage);
  const turn: RunItem = {
    type: "turn",
    turn: Number(fields.turn),
    finish: String(fields.finish),
    usage,
    calls: Array.isArray(fields.tool_calls) ? fields.tool_calls.length : 0,
  };
  const total = {
    input_tokens: state.usage.input_tokens + usage.input_tokens,
    output_tokens: state.usage.output_tokens + usage.output_tokens,
  };
  const first = state.items.findLastIndex((item) => item.type !== "text" && item.type !== "thinking") + 1;
  return { ...state, items: state.items.toSpliced(first, 0, turn), usage: total };
}

function newCall(fields: Json): CallItem {
  return {
    type: "call",
    callId: String(fields.call_id ?? ""),
    name: String(fields.name ?? ""),
    arguments: (fields.arguments ?? {}) as Json,
    output: "",
  };
}

function startCall(state: RunState, fields: Json): RunState {
  const exists = state.items.some(
    (item) => item.type === "call" && item.callId === fields.call_id && !item.result,
  );
  if (!exists) return addItem(state, newCall(fields));
  return updateCall(state, fields, (call) => ({ ...call, arguments: (fields.arguments ?? {}) as Json }));
}

/** Change the latest call with the id of the event, which is added if it is unknown. */
function updateCall(state: RunState, fields: Json, change: (call: CallItem) => CallItem): RunState {
  const index = state.items.findLastIndex((item) => item.type === "call" && item.callId === fields.call_id);
  const call = state.items[index];
  if (call?.type !== "call") return addItem(state, change(newCall(fields)));
  return { ...state, items: state.items.with(index, change(call)) };
}

function requestApproval(state: RunState, fields: Json): RunState {
  return updateCall(state, fields, (call) => ({
    ...call,
    approval: {
      id: String(fields.approval_id),
      sha256: String(fields.sha256 ?? ""),
      arguments: (fields.arguments ?? {}) as Json,
      status: "pending",
      reason: "",
    },
  }));
}

function decideApproval(state: RunState, fields: Json): RunState {
  return updateCall(state, fields, (call) =>
    call.approval
      ? {
          ...call,
          approval: { ...call.approval, status: String(fields.status), reason: String(fields.reason ?? "") },
        }
      : call,
  );
}

function finishRun(state: RunState, fields: Json): RunState {
  const answer = String(fields.text ?? "");
  const lastCall = state.items.findLastIndex((item) => item.type === "call");
  const lastText = state.items.findLastIndex((item) => item.type === "text");
  const shown = state.items[lastText];
  const text: RunItem = { type: "text", text: answer };
  const items =
    lastText > lastCall
      ? shown?.type === "text" && answer.endsWith(shown.text)
        ? state.items
        : state.items.with(lastText, text)
      : answer
        ? [...state.items, text]
        : state.items;
  return {
    ...state,
    items,
    phase: "finished",
    answer,
    reason: String(fields.reason ?? ""),
    usage: toUsage(fields.usage),
    cost: typeof fields.cost === "number" ? fields.cost : null,
  };
}

function failRun(state: RunState, error: Json): RunState {
  const isCancelled = error.kind === "cancelled";
  return {
    ...state,
    phase: isCancelled ? "cancelled" : "failed",
    error: String(error.message ?? ""),
    errorKind: String(error.kind ?? ""),
  };
}

function toUsage(value: unknown): Usage {
  const usage = (value ?? {}) as Partial<Usage>;
  return { input_tokens: usage.input_tokens ?? 0, output_tokens: usage.output_tokens ?? 0 };
}
