// A kernel as a script, composed of the trace's texts, its listings, and the code shared by all scripts.

import SHARED from "../../tinyexplore/explore/tracefile/script_body.py"; // gzipped, in base64
import type { Trace } from "./model";
import { fromBase64, unzip } from "./payload";
import type { TraceIndex } from "./trace_index";

/** Whether a kernel has a script: it is no copy, and the trace has its source. */
export function hasReproducer({ trace }: TraceIndex, id: number): boolean {
  return trace.scripts.some(({ kernel }) => kernel === id);
}

/** Returns the script of a kernel that has one. */
export async function writeReproducer({ trace }: TraceIndex, id: number): Promise<string> {
  return scriptText(trace, id, await unzip(fromBase64(SHARED)));
}

/** Returns the same, with the text of `script_body.py`. */
export function scriptText(trace: Trace, id: number, shared: string): string {
  const { texts, inserts } = trace.scripts.find(({ kernel }) => kernel === id)!;
  const contents = new Map([["shared", shared.replace(/^"""[\s\S]*?"""\n+/, "").trimEnd()]]);
  for (const { kernel, language, lines } of trace.programs)
    if (kernel === id) contents.set(language, `${lines.map(({ text }) => text).join("\n")}\n`);
  return texts.map((text, i) => text + (contents.get(inserts[i]) ?? "")).join("");
}
