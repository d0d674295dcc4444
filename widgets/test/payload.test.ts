import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { fromBase64, readTrace } from "../src/payload";

const TABLES = "options sources frames nodes rules stages links kernels programs runs buffers messages".split(" ");
const EMPTY = Object.fromEntries(TABLES.map((name) => [name, []]));
const TRACE = JSON.stringify({ version: 1, title: "é → x", ...EMPTY });

test("a trace is read from gzipped JSON and from plain JSON", async () => {
  assert.equal((await readTrace(new Uint8Array(gzipSync(TRACE)))).title, "é → x");
  assert.equal((await readTrace(new TextEncoder().encode(TRACE))).title, "é → x");
});

test("base64 may be broken over lines", () => {
  assert.deepEqual([...fromBase64("AQID\n  BA==\n")], [1, 2, 3, 4]);
});

test("an empty payload and another version say what would do", async () => {
  await assert.rejects(readTrace(new Uint8Array()), /gzipped JSON/);
  await assert.rejects(readTrace(new TextEncoder().encode('{"version": 99}')), /version 99.*Export the trace again/);
});
