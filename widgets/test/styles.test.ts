// Every custom property that a stylesheet reads is defined somewhere: a declaration with an undefined one has no effect.

import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const files = readdirSync("src", { recursive: true, encoding: "utf-8" }).filter((name) => /\.(css|ts)$/.test(name));
const texts = files.map((name) => readFileSync(`src/${name}`, "utf-8"));

function find(pattern: RegExp): Set<string> {
  return new Set(texts.flatMap((text) => [...text.matchAll(pattern)].map((match) => match[1])));
}

test("every custom property that is read without a fallback is defined", () => {
  const read = find(/var\((--[a-z-]+)\)/g);
  const defined = new Set([...find(/(--[a-z-]+)\s*:/g), ...find(/["'`](--[a-z-]+)["'`]/g)]);
  assert.ok(read.size > 20);
  assert.deepEqual(
    [...read].filter((name) => !defined.has(name)),
    [],
  );
});
