// An engine in the page: it answers the questions of views and carries out their commands, as a notebook's kernel does.
// The bundle of pages with engine (live.ts) makes one; the explorer only connects it.

import type { Ask } from "./asking";
import type { Branch } from "./model";
import { fromBase64, readJson } from "./payload";
import type { TraceIndex } from "./provenance";
import { validRow } from "./valid";
import { type Places, type Sent, type Working, whatIfOf } from "./whatif";

/** Branches as they travel: each is gzipped JSON, in base64. */
export interface BranchNews {
  rows: string[];
  places: Places;
}

/** What Python sends without a request. */
export interface Told {
  branches(news: BranchNews): void;
  working(told: Partial<Working> & { complaint?: string }): void;
}

export interface Engine {
  ask: Ask;
  send(request: Sent): void;
  /** From now on `told` gets what Python sends. */
  hear(told: Told): void;
  /** What it is and how far, for the header. */
  badge: HTMLElement;
  /** Replaces the explorer by an editor for a program of the reader's own; undefined where the page has one already. */
  playground?: () => void;
}

const turns = new WeakMap<TraceIndex, Promise<void>>();

/** Takes further branches, each checked, in the order in which they were sent. */
export function takeBranches(index: TraceIndex, news: BranchNews): Promise<void> {
  const turn = (turns.get(index) ?? Promise.resolve())
    .then(() => take(index, news))
    .catch((error: unknown) => hearWorking(index, { complaint: String(error) }));
  turns.set(index, turn);
  return turn;
}

async function take(index: TraceIndex, { rows, places }: BranchNews): Promise<void> {
  const found = await Promise.all(rows.map((row) => readJson(fromBase64(row))));
  const whatIf = whatIfOf(index);
  let known = whatIf.branches.length;
  for (const row of found) known = Math.max(known, validRow("Branch", "branches", row, index.trace, known) + 1);
  whatIf.take(found as Branch[], places);
}

/** What Python is at, or has done. */
export function hearWorking(index: TraceIndex, told: Partial<Working> & { complaint?: string }): void {
  const { text, complaint = "", ...working } = told;
  const now =
    text === undefined ? null : { text, done: working.done ?? 0, of: working.of ?? 0, cancel: working.cancel ?? false };
  whatIfOf(index).hear(now, complaint);
}

/** The branches of `index` are made by `engine`. */
export function connectEngine(index: TraceIndex, engine: Engine): void {
  engine.hear({
    branches: (news) => void takeBranches(index, news),
    working: (told) => hearWorking(index, told),
  });
  whatIfOf(index).inPage = true;
  whatIfOf(index).connect((request) => engine.send(request));
}
