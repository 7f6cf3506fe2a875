import { useSyncExternalStore } from "react";
import { ApiError, type RequestOptions, request } from "./client";
import { describeError } from "./errors";
import { NEW_RUN, type RunState, reduceRun } from "./runState";
import { readEvents } from "./sse";

const MAX_RETRY_SECONDS = 8;
const MAX_STORED_RUNS = 300;
/** How often a page is redrawn while events arrive. */
const NOTIFY_MS = 16;
/** How long a run that no page shows keeps its connection: browsers open at most six to a server. */
const UNSEEN_MS = 1_000;

/** The connection to a run: open, interrupted and being retried, or closed at the end of the run. */
export type Connection = "open" | "retrying" | "closed";
export type LiveState = RunState & { runId: string; connection: Connection };

/** A run that the console follows: live, resumed after a broken connection, or replayed from the store. */
export class LiveRun {
  state: LiveState;
  private readonly listeners = new Set<() => void>();
  private lastEventId = "";
  private isStarted = false;
  private shownState: LiveState;
  private notifyTimer: ReturnType<typeof setTimeout> | undefined;
  private unseenTimer: ReturnType<typeof setTimeout> | undefined;
  private stream = new AbortController();
  private wake = () => {};

  constructor(runId = "") {
    this.state = { ...NEW_RUN, runId, connection: "open" };
    this.shownState = this.state;
  }

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    if (this.state.runId) this.ensureStarted();
    this.updateVisibility();
    return () => {
      this.listeners.delete(listener);
      this.updateVisibility();
    };
  };

  private isSeen(): boolean {
    return this.listeners.size > 0 && !globalThis.document?.hidden;
  }

  /** Follow the run on while a page shows it, and close its connection soon after no page does. */
  updateVisibility(): void {
    clearTimeout(this.unseenTimer);
    if (this.isSeen()) this.wake();
    else this.unseenTimer = setTimeout(() => this.state.runId && this.stream.abort(), UNSEEN_MS);
  }

  /** Return the state that was last notified. */
  getState = (): LiveState => this.shownState;

  /** Start a run with a request and follow it. Resolves with its id; throws if it does not start. */
  start(path: string, options: RequestOptions): Promise<string> {
    this.isStarted = true;
    return new Promise((resolve, reject) => {
      request(path, { method: "POST", signal: this.stream.signal, ...options })
        .then((response) => this.consume(response, resolve))
        .catch((error: unknown) => {
          if (this.state.runId) return;
          this.fail(error);
          reject(error);
          throw error;
        })
        .then(() => this.follow())
        .catch(() => undefined);
    });
  }

  /** Follow the run until its end. Later calls do nothing. */
  private ensureStarted(): void {
    if (this.isStarted) return;
    this.isStarted = true;
    void this.follow();
  }

  private async follow(): Promise<void> {
    for (
      let seconds = 0.5;
      this.state.connection !== "closed";
      seconds = Math.min(seconds * 2, MAX_RETRY_SECONDS)
    ) {
      if (!this.isSeen()) await new Promise<void>((resolve) => (this.wake = resolve));
      this.stream = new AbortController();
      const { signal } = this.stream;
      const headers: Record<string, string> = this.lastEventId ? { "Last-Event-ID": this.lastEventId } : {};
      try {
        const before = this.lastEventId;
        const path = `/api/runs/${encodeURIComponent(this.state.runId)}/events`;
        await this.consume(await request(path, { headers, signal }));
        if (this.lastEventId !== before) seconds = 0.5;
      } catch (error) {
        if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429) {
          this.fail(error);
        }
      }
      if ((this.state.connection as Connection) === "closed") return;
      if (!this.isSeen()) continue;
      this.update({ connection: "retrying" });
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    }
  }

  private async consume(
    response: Response,
    onRunId: (runId: string) => void = () => undefined,
  ): Promise<void> {
    if (!response.body) return;
    try {
      for await (const event of readEvents(response.body)) {
        if (event.id) this.lastEventId = event.id;
        if (event.data === "[DONE]") return this.close();
        if (event.event === "run_started") {
          const runId = String((event.data as { run_id: string }).run_id);
          this.update({ runId });
          liveRuns.set(runId, this);
          onRunId(runId);
          this.updateVisibility();
        }
        this.update({ ...reduceRun(this.state, event), connection: "open" });
      }
    } catch {
      // the connection broke; `follow` resumes after the last event
    }
  }

  private fail(error: unknown): void {
    const { kind, message } = describeError(error);
    this.update({ connection: "closed", phase: "failed", error: message, errorKind: kind });
  }

  /** The stream has ended, though the event of the end may be missing: a process that died writes none. */
  private close(): void {
    const isOpen = this.state.phase === "running" || this.state.phase === "waiting";
    this.update({ connection: "closed", phase: isOpen ? "failed" : this.state.phase });
  }

  /** Change the state at once, and notify once for all the changes that follow one another closely. */
  private update(change: Partial<LiveState>): void {
    this.state = { ...this.state, ...change };
    this.notifyTimer ??= setTimeout(() => {
      this.notifyTimer = undefined;
      this.shownState = this.state;
      for (const listener of this.listeners) listener();
    }, NOTIFY_MS);
  }
}

const liveRuns = new Map<string, LiveRun>();
globalThis.document?.addEventListener("visibilitychange", () => {
  for (const run of liveRuns.values()) run.updateVisibility();
});

/** Return the run with an id; it is followed from its first event when it is first needed. */
export function getLiveRun(runId: string): LiveRun {
  let run = liveRuns.get(runId);
  if (!run) {
    if (liveRuns.size >= MAX_STORED_RUNS) {
      const ended = [...liveRuns].find(([, other]) => other.state.connection === "closed");
      if (ended) liveRuns.delete(ended[0]);
    }
    run = new LiveRun(runId);
    liveRuns.set(runId, run);
  }
  return run;
}

/** Return the current state of a run, and follow it while the page shows it. */
export function useLiveRun(run: LiveRun): LiveState {
  return useSyncExternalStore(run.subscribe, run.getState);
}
