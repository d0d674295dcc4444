// Questions to whoever has the engine: a notebook's kernel, over the channel of its widget. A question and its answer are
// plain data (`tinyexplore/explore/asking.py`), so a page that carries the engine can answer them as well.

import type { Compared } from "./model";

export interface Question {
  ask: "why" | "why kernels" | "debug" | "caches" | "gpu" | "throughput" | "rosetta" | "shape" | "rules" | "matches" | "check" | "branch" | "write";
  [argument: string]: unknown;
}

/** Gives the answer, or throws an Error that says why there is none. */
export type Ask = (question: Question) => Promise<unknown>;

/** What is needed of anywidget's model. */
export interface Channel {
  send(content: unknown): void;
  on(event: "msg:custom", handler: (content: unknown) => void): void;
  off(event: "msg:custom", handler: (content: unknown) => void): void;
}

interface Reply {
  id?: string;
  answer?: { error?: string };
}

const PATIENCE_MS = 20_000; // a kernel may be busy with a cell

/** Asks Python over a widget's channel. */
export function askOver(channel: Channel, patience = PATIENCE_MS): Ask {
  const own = Math.random().toString(36).slice(2); // other pages may show the same widget
  let count = 0;
  return (question) =>
    new Promise((resolve, reject) => {
      const id = `${own} ${(count += 1)}`;
      const finish = (act: () => void): void => {
        clearTimeout(timer);
        channel.off("msg:custom", hear);
        act();
      };
      const hear = (content: unknown): void => {
        const { id: of, answer } = content as Reply;
        if (of !== id || answer === undefined) return;
        finish(() => (answer.error === undefined ? resolve(answer) : reject(new Error(answer.error))));
      };
      const timer = setTimeout(() => finish(() => reject(new Error("Python does not answer: is its kernel running, and free?"))), patience);
      channel.on("msg:custom", hear);
      channel.send({ id, question });
    });
}

// *** answers: the fields of the dataclasses in tinyexplore/explore/why/rules.py, matching.py, watching.py and fusions.py ***

export interface Place {
  function: string;
  file: string;
  line: number;
  text: string;
  because: string;
  values: [string, string][];
}

export interface Obstacle {
  kind: string;
  path: number[];
  wanted: string;
  found: string;
  places: Place[];
}

export interface Tried {
  rule: string;
  law: string;
  doc: string;
  file: string;
  line: number;
  text: string;
  verdict: "fires" | "stopped" | "unknown";
  passed: number;
  parts: number;
  bound: [string, string][];
  first: boolean;
  after: string;
  obstacle: Obstacle | null;
  at: number | null;
}

export interface Fired {
  step: number;
  rule: string;
  before: number;
  after: number;
}

export interface WhyNot {
  stage: number;
  name: string;
  step: number;
  node: number;
  what: string;
  note: string;
  fired: Fired[];
  could: Tried[];
  stopped: Tried[];
}

export interface Edge {
  src: number;
  dst: number;
  mark: "fused" | "cut" | "again" | "read";
  decision: string;
  reason: string;
  compared: Compared[];
  kernels: number[];
  into: number[];
  against_cut: string;
  against_join: string;
}

export interface WhyKernels {
  a: number;
  b: number;
  text: string;
  together: number[];
  kernels_of_a: number[];
  kernels_of_b: number[];
  edges: Edge[];
}
