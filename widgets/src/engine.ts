// An engine in the page: it responds to requests of views and runs their commands, like a notebook's kernel. The
// bundle of
// pages with engine (live.ts) creates one; the explorer only connects it.

import type { Ask } from "./asking";
import type { Branch } from "./model";
import { fromBase64, readJson } from "./payload";
import type { TraceIndex } from "./provenance";
import { validRow } from "./valid";
import { type Places, type Sent, type Working, whatIfOf } from "./whatif";

/** Branches in transfer format: each is gzipped JSON in base64. */
export interface BranchNews {
  rows: string[];
  places: Places;
}

/** Messages from Python that are not responses. */
export interface Told {
  branches(news: BranchNews): void;
  working(told: Partial<Working> & { complaint?: string }): void;
}

export interface Engine {
  ask: Ask;
  send(request: Sent): void;
  /** Sends Python's messages to `told` from now on. */
  hear(told: Told): void;
  /** The engine's state and progress, for the header. */
  badge: HTMLElement;
  /** Replaces the explorer by an editor for the user's own program; undefined if the page has an editor already. */
  playground?: () => void;
}

const turns = new WeakMap<TraceIndex, Promise<void>>();

/** Adds further branches in the order received, after validation. */
export function takeBranches(index: TraceIndex, news: BranchNews): Promise<void> {
  const turn = (turns.get(index) ?? Promise.resolve())
    .then(() => take(index, news))
    .catch((error: unknown) => hearWorking(index, { complaint: String(error) }));
  turns.set(index, turn);
  return turn;
}

async function take(index: TraceIndex, { rows, places }: BranchNews): Promise<void> {
  const branches = await Promise.all(rows.map((row) => readJson(fromBase64(row))));
  const whatIf = whatIfOf(index);
  let count = whatIf.branches.length;
  for (const row of branches) count = Math.max(count, validRow("Branch", "branches", row, index.trace, count) + 1);
  whatIf.take(branches as Branch[], places);
}

/** Updates the progress of Python's work, or its result. */
export function hearWorking(index: TraceIndex, told: Partial<Working> & { complaint?: string }): void {
  const { text, complaint = "", ...working } = told;
  const now =
    text === undefined ? null : { text, done: working.done ?? 0, of: working.of ?? 0, cancel: working.cancel ?? false };
  whatIfOf(index).hear(now, complaint);
}

/** Connects `index` with `engine`, which creates its branches. */
export function connectEngine(index: TraceIndex, engine: Engine): void {
  engine.hear({
    branches: (news) => void takeBranches(index, news),
    working: (told) => hearWorking(index, told),
  });
  whatIfOf(index).inPage = true;
  whatIfOf(index).connect((request) => engine.send(request));
}
