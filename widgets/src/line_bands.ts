// The pale background colors of a listing's lines, which show the lines that belong together.

import type { TraceIndex } from "./trace_index";

export type BandMode = "role" | "line" | "off";

/** The description of each mode, in the order of the menu. */
export const BAND_TITLES: Record<BandMode, string> = {
  role: "by role (loop, memory, arithmetic, reduction, store)",
  line: "by line of Python",
  off: "none",
};

const BAND_OF_GROUP: Record<string, string> = {
  loop: "band-loop",
  memory: "band-memory",
  buffer: "band-memory",
  reduce: "band-reduce",
  alu: "band-alu",
  movement: "band-alu",
};
const GROUP_WEIGHT = ["loop", "reduce", "memory", "alu", "movement", "buffer"];

/** Returns the class of a line from its nodes, "" for none. */
export function bandOf(
  index: TraceIndex,
  kernel: number | null,
  mode: BandMode,
  language: string,
  nodes: readonly number[],
): string {
  if (mode === "off" || nodes.length === 0) return "";
  if (mode === "line") {
    const frame = index.frameOf(nodes[0], kernel);
    return frame === null ? "" : `band-${(frame.line + frame.source * 3) % 6}`;
  }
  if (language === "source") return "";
  const groups = new Set(nodes.map((id) => (index.node(id).op === "STORE" ? "store" : index.node(id).group)));
  if (groups.has("store")) return "band-store";
  const best = GROUP_WEIGHT.find((group) => groups.has(group));
  return best === undefined ? "" : (BAND_OF_GROUP[best] ?? "");
}
