// Computes the digests of UOps, which a packed trace omits. Python writes the packed form (tracefile/digests.py).

import type { Node } from "./model";

const MEMORY = ["DEFINE_GLOBAL", "DEFINE_LOCAL"];
const LENGTH = 12; // hexadecimal digits
const encoder = new TextEncoder();

/** Returns all nodes of a trace with missing digests filled in. */
export function addDigests(nodes: readonly Node[]): readonly Node[] {
  for (const node of nodes) {
    if (node.digest !== "" || node.kind !== "uop") continue;
    const detail = MEMORY.includes(node.op) ? node.detail : "";
    const sources = node.src.map((source) => nodes[source].digest);
    (node as { digest: string }).digest = sha1(
      `${node.op}|${node.dtype}|${node.arg}|${detail}|${sources.join()}`,
    ).slice(0, LENGTH);
  }
  return nodes;
}

/** Returns the SHA-1 (FIPS 180-4) of a text in UTF-8. The browser's own function is asynchronous. */
export function sha1(text: string): string {
  const bytes = encoder.encode(text);
  const words = new Int32Array(((bytes.length + 72) >> 6) * 16);
  bytes.forEach((byte, i) => (words[i >> 2] |= byte << (24 - 8 * (i & 3))));
  words[bytes.length >> 2] |= 0x80 << (24 - 8 * (bytes.length & 3));
  words[words.length - 1] = bytes.length * 8;
  const state = [0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0];
  const schedule = new Int32Array(80);
  for (let block = 0; block < words.length; block += 16) {
    let [a, b, c, d, e] = state;
    for (let round = 0; round < 80; round += 1) {
      const mixed =
        round < 16
          ? words[block + round]
          : rotate(schedule[round - 3] ^ schedule[round - 8] ^ schedule[round - 14] ^ schedule[round - 16], 1);
      schedule[round] = mixed;
      const chosen =
        round < 20
          ? ((b & c) | (~b & d)) + 0x5a827999
          : round < 40
            ? (b ^ c ^ d) + 0x6ed9eba1
            : round < 60
              ? ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc
              : (b ^ c ^ d) + 0xca62c1d6;
      [a, b, c, d, e] = [(rotate(a, 5) + chosen + e + mixed) | 0, a, rotate(b, 30), c, d];
    }
    [a, b, c, d, e].forEach((word, i) => (state[i] = (state[i] + word) | 0));
  }
  return state.map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
}

function rotate(word: number, by: number): number {
  return (word << by) | (word >>> (32 - by));
}
