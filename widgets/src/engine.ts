// An engine in the page: it responds to requests of views and runs their commands, like a notebook's kernel. The bundle
// of pages with engine (live.ts) creates one; the explorer only connects it.

import type { SendRequest } from "./request_channel";
import type { Branch } from "./model";
import { fromBase64, readJson } from "./payload";
import type { TraceIndex } from "./trace_index";
import { validRow } from "./trace_validation";
import { type CurrentBranches, type BranchRequest, type Progress, whatIfOf } from "./what_if";

/** Branches in transfer format: each is gzipped JSON in base64. */
export interface BranchMessage {
  rows: string[];
  places: CurrentBranches;
}

/** Messages from Python that are not responses. */
export interface EngineListener {
  branches(message: BranchMessage): void;
  working(update: Partial<Progress> & { error?: string }): void;
}

export interface Engine {
  ask: SendRequest;
  send(request: BranchRequest): void;
  /** Sends Python's messages to `listener` from now on. */
  setListener(listener: EngineListener): void;
  /** The engine's state and progress, for the header. */
  badge: HTMLElement;
  /** Replaces the explorer by an editor for the user's own program; undefined if the page has an editor already. */
  playground?: () => void;
}

const turns = new WeakMap<TraceIndex, Promise<void>>();

/** Adds further branches in the order received, after validation. */
export function addBranches(index: TraceIndex, message: BranchMessage): Promise<void> {
  const turn = (turns.get(index) ?? Promise.resolve())
    .then(() => take(index, message))
    .catch((error: unknown) => updateProgress(index, { error: String(error) }));
  turns.set(index, turn);
  return turn;
}

async function take(index: TraceIndex, { rows, places }: BranchMessage): Promise<void> {
  const branches = await Promise.all(rows.map((row) => readJson(fromBase64(row))));
  const whatIf = whatIfOf(index);
  let count = whatIf.branches.length;
  for (const row of branches) count = Math.max(count, validRow("Branch", "branches", row, index.trace, count) + 1);
  whatIf.addBranches(branches as Branch[], places);
}

/** Updates the progress of Python's work, or its result. */
export function updateProgress(index: TraceIndex, update: Partial<Progress> & { error?: string }): void {
  const { text, error = "", ...working } = update;
  const now =
    text === undefined ? null : { text, done: working.done ?? 0, of: working.of ?? 0, cancel: working.cancel ?? false };
  whatIfOf(index).setProgress(now, error);
}

/** Connects `index` with `engine`, which creates its branches. */
export function connectEngine(index: TraceIndex, engine: Engine): void {
  engine.setListener({
    branches: (message) => void addBranches(index, message),
    working: (update) => updateProgress(index, update),
  });
  whatIfOf(index).inPage = true;
  whatIfOf(index).connect((request) => engine.send(request));
}
