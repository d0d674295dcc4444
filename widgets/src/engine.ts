// An engine in the page: it answers the questions of views and carries out their commands, as a notebook's kernel does.
// The bundle of live pages (live.ts) makes one; the explorer only connects it.

import type { Ask } from "./asking";
import { fromBase64, readJson } from "./payload";
import type { TraceIndex } from "./provenance";
import { validRows } from "./valid";
import { type Recorded, type Sent, type Working, whatIfOf } from "./whatif";

/** What Python tells without being asked. */
export interface Told {
  branches(data: string): void;
  working(told: Partial<Working> & { complaint?: string }): void;
}

export interface Engine {
  ask: Ask;
  send(request: Sent): void;
  /** From now on `told` hears what Python tells. */
  hear(told: Told): void;
  /** What it is and how far, for the header. */
  badge: HTMLElement;
}

/** The branches that were made since the capture, checked. */
export function takeBranches(index: TraceIndex, found: Recorded): void {
  const { trace } = index;
  validRows("OptLaw", "laws", found.laws, trace);
  validRows("Branch", "branches", found.branches, { ...trace, laws: found.laws });
  whatIfOf(index).take(found);
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
    branches: (data) => void readJson(fromBase64(data)).then((found) => takeBranches(index, found as Recorded)),
    working: (told) => hearWorking(index, told),
  });
  whatIfOf(index).inPage = true;
  whatIfOf(index).connect((request) => engine.send(request));
}
