// The soft colours behind the lines of a listing: which of them belong together.

import type { TraceIndex } from "./provenance";

export type BandMode = "role" | "line" | "off";

/** What each mode means, in the order in which one comes to them. */
export const BAND_WORDS: Record<BandMode, string> = {
  role: "by role (loop, memory, arithmetic, reduction, store)",
  line: "by the Python line that a line comes from",
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

/** The class of a line that these nodes made, "" for none. */
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
