// A kernel as a script of its own, which runs with NumPy and llvmlite or a C compiler alone: made of the trace, offline.

import SHARED from "../../tinyexplore/explore/exports/script_body.py"; // gzipped, in base64
import { fromBase64, unzipped } from "./payload";
import type { TraceIndex } from "./provenance";
import { scriptText } from "./script_text";

/** Whether a kernel has a script: not a copy, nor one of which the trace has no source. */
export function hasReproducer({ trace }: TraceIndex, id: number): boolean {
  const languages = trace.programs.filter(({ kernel }) => kernel === id).map(({ language }) => language);
  return languages.includes("uops") && (languages.includes("llvm") || languages.includes("c"));
}

/** The script of a kernel that has one. ScriptError if a text of the trace would become code. */
export async function reproducer(index: TraceIndex, id: number): Promise<string> {
  return scriptText(index, id, await unzipped(fromBase64(SHARED)));
}
