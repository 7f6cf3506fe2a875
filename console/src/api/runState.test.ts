import { describe, expect, it } from "vitest";
import { NEW_RUN, reduceRun } from "./runState";
import { parseEvent, type SseEvent } from "./sse";

const event = (name: string, data: unknown): SseEvent => ({ id: "", event: name, data });
const reduce = (...events: SseEvent[]) => events.reduce(reduceRun, NEW_RUN);

describe("reduceRun", () => {
  it("joins deltas of the answer", () => {
    const state = reduce(event("", { content: "a" }), event("", { content: "b" }));
    expect(state.items).toEqual([{ type: "text", text: "ab" }]);
  });

  it("shows the text before a call once", () => {
    const state = reduce(
      event("", { content: "Let me check." }),
      event("tool_started", { call_id: "1", name: "a", arguments: {} }),
      event("tool_finished", { call_id: "1", name: "a", success: true, result: "one" }),
      event("", { content: "\n\nIt is one." }),
      event("run_finished", { text: "Let me check.\n\nIt is one.", reason: "answer" }),
    );
    expect(state.items.filter((item) => item.type === "text").map((item) => item.text)).toEqual([
      "Let me check.",
      "\n\nIt is one.",
    ]);
    expect(state.answer).toBe("Let me check.\n\nIt is one.");
  });

  it("adds the result to the call that it belongs to", () => {
    const state = reduce(
      event("tool_started", { call_id: "1", name: "a", arguments: { x: 1 } }),
      event("tool_started", { call_id: "2", name: "b", arguments: {} }),
      event("tool_finished", { call_id: "1", name: "a", success: true, result: "one" }),
    );
    const [first, second] = state.items;
    expect(first).toMatchObject({ name: "a", arguments: { x: 1 }, result: { result: "one" } });
    expect(second).not.toHaveProperty("result");
  });

  it("waits for an approval and continues after the decision", () => {
    const needed = reduce(
      event("tool_started", { call_id: "1", name: "pay", arguments: { amount: 5 } }),
      event("approval_needed", { approval_id: "x", call_id: "1", sha256: "s", arguments: { amount: 5 } }),
    );
    expect(needed.phase).toBe("waiting");
    const decided = reduceRun(
      needed,
      event("approval_decided", { call_id: "1", status: "denied", reason: "no" }),
    );
    expect(decided.phase).toBe("running");
    expect(decided.items[0]).toMatchObject({ approval: { id: "x", status: "denied", reason: "no" } });
  });

  it("replaces a streamed text by the final answer", () => {
    const state = reduce(
      event("", { content: "draft" }),
      event("run_finished", { text: "final", reason: "answer" }),
    );
    expect(state.items).toEqual([{ type: "text", text: "final" }]);
    expect(state.phase).toBe("finished");
  });

  it("accepts an answer about data stored without warnings", () => {
    const { data } = reduce(event("data_answered", { text: "25", sql: "SELECT 25" }));
    expect(data).toMatchObject({ text: "25", warnings: [], error: "" });
  });

  it("says why a run failed", () => {
    expect(reduce(event("error", { error: { kind: "cancelled", message: "x" } })).phase).toBe("cancelled");
    const failed = reduce(event("error", { error: { kind: "model_unavailable", message: "away" } }));
    expect([failed.phase, failed.error]).toEqual(["failed", "away"]);
  });
});

describe("parseEvent", () => {
  it("skips comments and joins data lines", () => {
    expect(parseEvent(": still working")).toBeNull();
    expect(parseEvent('id: r:1\nevent: x\ndata: {"a":\ndata: 1}')).toEqual({
      id: "r:1",
      event: "x",
      data: { a: 1 },
    });
    expect(parseEvent("data: [DONE]")).toEqual({ id: "", event: "", data: "[DONE]" });
  });
});

describe("turns", () => {
  it("precede the texts that the model wrote in them", () => {
    const call = event("tool_started", { call_id: "1", name: "a" });
    const state = reduce(
      call,
      event("", { content: "x" }),
      event("model_replied", { turn: 2, finish: "stop" }),
    );
    expect(state.items.map((item) => item.type)).toEqual(["call", "turn", "text"]);
  });
});
