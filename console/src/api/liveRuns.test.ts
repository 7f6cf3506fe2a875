import { expect, it, vi } from "vitest";
import { getLiveRun } from "./liveRuns";

const EVENTS = 1_000;

it("redraws a page far less often than events arrive", async () => {
  const events = Array.from({ length: EVENTS }, (_, index) => `id: r:${index}\ndata: {"content":"x"}\n\n`);
  const stream = [...events, "data: [DONE]\n\n"].join("");
  vi.stubGlobal(
    "fetch",
    vi.fn(async () => new Response(stream)),
  );
  const run = getLiveRun("r");
  let redraws = 0;
  const isClosed = new Promise<void>((resolve) => {
    run.subscribe(() => {
      redraws++;
      if (run.getState().connection === "closed") resolve();
    });
  });
  await isClosed;
  expect(run.getState().items).toEqual([{ type: "text", text: "x".repeat(EVENTS) }]);
  expect(redraws).toBeLessThan(EVENTS / 10);
});
