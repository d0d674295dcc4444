// A kernel as a script, put together from parts that the trace has, its listings, and the code of all scripts.

import SHARED from "../../tinyexplore/explore/tracefile/script_body.py"; // gzipped, in base64
import type { Trace } from "./model";
import { fromBase64, unzipped } from "./payload";
import type { TraceIndex } from "./provenance";

/** Whether a kernel has a script: not a copy, nor one of which the trace has no source. */
export function hasReproducer({ trace }: TraceIndex, id: number): boolean {
  return trace.scripts.some(({ kernel }) => kernel === id);
}

/** The script of a kernel that has one. */
export async function reproducer({ trace }: TraceIndex, id: number): Promise<string> {
  return scriptText(trace, id, await unzipped(fromBase64(SHARED)));
}

/** The same, with the text of `script_body.py`. */
export function scriptText(trace: Trace, id: number, shared: string): string {
  const { texts, inserts } = trace.scripts.find(({ kernel }) => kernel === id)!;
  const contents = new Map([["shared", shared.replace(/^"""[\s\S]*?"""\n+/, "").trimEnd()]]);
  for (const { kernel, language, lines } of trace.programs)
    if (kernel === id) contents.set(language, `${lines.map(({ text }) => text).join("\n")}\n`);
  return texts.map((text, i) => text + (contents.get(inserts[i]) ?? "")).join("");
}
