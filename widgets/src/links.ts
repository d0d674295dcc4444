// A position in a trace as the fragment of an address, and the history of positions.

import { isTensor } from "./dialect";
import type { TraceIndex } from "./trace_index";
import { type Cursor, PANELS, type Place } from "./store";

/** The content of a link; what it omits stays unchanged. */
export interface Target {
  cursor: Partial<Cursor>;
  selected: number[] | null;
  /** The chapter of the story; null for the workbench. */
  story: string | null;
}

const PLACES: readonly Place[] = ["python", "lazy", "kernels", "passes", "uops", "code", "run"];

/** Returns `#stage=4&step=2&kernel=0&node=17`: short, and equal for equal positions. */
export function linkOf(cursor: Cursor, selected: readonly number[], story: string | null): string {
  if (story !== null) return `#story=${story}`;
  const { stage, step, kernel, graph, place, panel } = cursor;
  const parts: [string, string | number | null][] = [
    ["stage", stage],
    ["step", stage === null ? null : step],
    ["kernel", kernel],
    ["graph", graph],
    ["place", place],
    ["panel", panel],
    ["node", selected.length === 0 ? null : selected.join(",")],
  ];
  return `#${parts
    .filter(([, value]) => value !== null)
    .map(([key, value]) => `${key}=${value}`)
    .join("&")}`;
}

/** Parses a fragment; null if it is no link of the explorer. Invalid values are omitted. */
export function readLink(fragment: string): Target | null {
  const query = new URLSearchParams(fragment.replace(/^#/, ""));
  if (!["story", "stage", "node", "kernel", "place", "panel", "graph"].some((key) => query.has(key))) return null;
  const number = (key: string): number | undefined =>
    /^\d+$/.test(query.get(key) ?? "") ? Number(query.get(key)) : undefined;
  const word = <T extends string>(key: string, allowed: readonly T[]): T | undefined =>
    allowed.find((choice) => choice === query.get(key));
  const all = {
    stage: number("stage"),
    step: number("step"),
    kernel: number("kernel"),
    graph: word("graph", ["lazy", "uops"] as const),
    place: word("place", PLACES),
    panel: word("panel", PANELS),
  };
  const cursor = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Partial<Cursor>;
  const nodes = (query.get("node") ?? "")
    .split(",")
    .filter((part) => /^\d+$/.test(part))
    .map(Number);
  return { cursor, selected: query.has("node") ? nodes : null, story: query.get("story") };
}

/** Returns the position of a link, with the graph of its stage if it names no graph. */
export function completeCursor(index: TraceIndex, cursor: Partial<Cursor>): Partial<Cursor> {
  const { stage } = cursor;
  return stage === undefined || stage === null ? cursor : { ...placeOf(index, stage), ...cursor };
}

/** Returns the position of a stage, with its graph. */
export function placeOf(index: TraceIndex, id: number): Partial<Cursor> {
  const stage = index.trace.stages[id];
  if (stage === undefined) return {};
  const [root] = stage.after.length > 0 ? stage.after : stage.before;
  const isLazy = root !== undefined && isTensor(index.trace, index.node(root));
  return { stage: id, graph: isLazy ? "lazy" : "uops", place: isLazy ? "lazy" : "passes" };
}

/** Whether two links differ only by some steps forward. */
function isSamePosition(a: string, b: string): boolean {
  const plain = (link: string): string => link.replace(/\bstep=\d+&?/, "");
  return plain(a) === plain(b);
}

/** The history of positions; in a page of its own it is the browser's history. */
export class PositionHistory {
  private readonly links: string[];
  private index = 0;
  private now: string;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly popped = (): void => this.skipHistory(location.hash || this.links[0]);

  /** `apply`: goes to a link. `here`: returns the link to the current position. */
  constructor(
    private readonly isPage: boolean,
    private readonly apply: (link: string) => void,
    private readonly here: () => string,
  ) {
    this.now = here();
    this.links = [this.now];
    if (isPage) addEventListener("popstate", this.popped);
  }

  /** Adds the current position, after the user stayed there for a moment. */
  visit(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.note(), 120);
  }

  note(): void {
    const link = this.here();
    if (link === this.now) return;
    const stays = isSamePosition(this.now, link);
    this.now = link;
    if (this.isPage) {
      if (stays) history.replaceState(null, "", link);
      else history.pushState(null, "", link);
    } else if (stays) this.links[this.index] = link;
    else {
      this.links.splice(this.index + 1, Infinity, link);
      this.index += 1;
    }
  }

  /** Goes one position back (-1) or forward (1). */
  go(direction: 1 | -1): void {
    if (this.isPage) {
      history.go(direction);
      return;
    }
    const to = this.index + direction;
    if (this.links[to] === undefined) return;
    this.index = to;
    this.skipHistory(this.links[to]);
  }

  /** Ignores the position after a move in the history, which is no new one. */
  private skipHistory(link: string): void {
    this.apply(link);
    clearTimeout(this.timer);
    this.now = this.here();
  }

  stop(): void {
    clearTimeout(this.timer);
    if (this.isPage) removeEventListener("popstate", this.popped);
  }
}
