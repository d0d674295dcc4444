// The packed trace: gzipped JSON, as bytes in a widget's trait or as base64 in a page.

import { TRACE_VERSION, type Trace } from "./model";
import { unpackTables } from "./columns";
import { PayloadError, validTrace } from "./trace_validation";

export { PayloadError };

const MOST_BYTES = 256 * 2 ** 20; // most bytes of decompressed JSON, as in tinyexplore.explore.Limits

export function fromBase64(text: string): Uint8Array {
  const binary = atob(text.replace(/\s+/g, ""));
  const data = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) data[i] = binary.charCodeAt(i);
  return data;
}

/** Decodes a trace from JSON, gzipped or plain (a trace file). */
export async function readTrace(data: Uint8Array): Promise<Trace> {
  if (data.length === 0) throw new PayloadError("The payload is empty: give the widget a trace in gzipped JSON.");
  const trace = (await readJson(data)) as { version?: unknown } | null;
  await yieldToPage();
  if (trace?.version !== TRACE_VERSION) {
    throw new PayloadError(
      `This trace has version ${String(trace?.version)}. This explorer reads version ${TRACE_VERSION}. ` +
        "Export the trace again with the tinyexplore version that created this widget.",
    );
  }
  const valid = validTrace(unpackTables("Trace", trace));
  await yieldToPage();
  return valid;
}

/** Returns the text of gzipped data. */
export function unzip(data: Uint8Array): Promise<string> {
  return textOf(new Blob([data as BlobPart]).stream().pipeThrough(new DecompressionStream("gzip")));
}

/** Yields to other work of the page between two long tasks. */
function yieldToPage(): Promise<void> {
  return new Promise((done) => setTimeout(done));
}

/** Decodes JSON, gzipped or plain. */
export async function readJson(data: Uint8Array): Promise<unknown> {
  const gzipped = data[0] === 0x1f && data[1] === 0x8b;
  const text = gzipped ? await unzip(data) : await textOf(new Blob([data as BlobPart]).stream());
  await yieldToPage();
  return JSON.parse(text);
}

async function textOf(stream: ReadableStream<Uint8Array>): Promise<string> {
  const reader = stream.getReader();
  const parts: Uint8Array[] = [];
  let size = 0;
  for (;;) {
    const { done, value } = await reader.read().catch((error: unknown) => {
      throw new PayloadError(`The gzip data is damaged (${String(error)}).`);
    });
    if (done) break;
    size += value.length;
    if (size > MOST_BYTES) {
      await reader.cancel();
      throw new PayloadError(`It has more than ${MOST_BYTES} bytes, decompressed.`);
    }
    parts.push(value);
  }
  return new TextDecoder("utf-8", { fatal: true }).decode(await new Blob(parts as BlobPart[]).arrayBuffer());
}
