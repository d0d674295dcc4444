// A program, its machine and a position in its trace as the fragment of an address: "#code=…&machine=…&stage=4".

export interface Shared {
  text: string;
  machine: string;
  /** A link of the explorer ("#stage=4&step=2"), "" for none. */
  place: string;
}

const MOST = 200_000; // most characters of a program in a link

export async function toFragment({ text, machine, place }: Shared): Promise<string> {
  const packed = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
  const data = new Uint8Array(await new Response(packed).arrayBuffer());
  const code = btoa(Array.from(data, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replace(/=+$/, "");
  const parts = [
    `code=${code}`,
    machine === "" ? "" : `machine=${encodeURIComponent(machine)}`,
    place.replace(/^#/, ""),
  ];
  return `#${parts.filter(Boolean).join("&")}`;
}

/** Parses a fragment; null if it has no program. Throws an Error if the program cannot be decoded. */
export async function fromFragment(fragment: string): Promise<Shared | null> {
  const query = new URLSearchParams(fragment.replace(/^#/, ""));
  const code = query.get("code");
  if (code === null) return null;
  const machine = query.get("machine") ?? "";
  query.delete("code");
  query.delete("machine");
  const fragmentLink = query.size > 0 ? `#${query.toString()}` : "";
  let text: string;
  try {
    const binary = atob(code.replaceAll("-", "+").replaceAll("_", "/"));
    const data = Uint8Array.from(binary, (character) => character.charCodeAt(0));
    text = await readBounded(new Blob([data]).stream().pipeThrough(new DecompressionStream("deflate-raw")));
  } catch (error) {
    throw new Error(
      `The program in this link cannot be read: it may have been cut (${error instanceof Error ? error.message : String(error)}).`,
    );
  }
  return { text, machine, place: fragmentLink };
}

async function readBounded(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const reader = stream.getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return text + decoder.decode();
    text += decoder.decode(value, { stream: true });
    if (text.length > MOST) throw new Error(`more than ${MOST} characters`);
  }
}
