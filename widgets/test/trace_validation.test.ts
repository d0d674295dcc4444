import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { readTrace } from "../src/payload";
import { PayloadError, validTrace } from "../src/trace_validation";

const FIXTURES = new URL("../../../tests/fixtures/traces/", import.meta.url); // from build/test
const whole = (): Record<string, never> => JSON.parse(readFileSync(new URL("whole.json", FIXTURES), "utf8"));
const refused: { at: (string | number)[]; value: unknown; says: string }[] = JSON.parse(
  readFileSync(new URL("refused.json", FIXTURES), "utf8"),
);

test("a whole trace is valid, and fields that came later may be missing", () => {
  const data = whole() as Record<string, unknown>;
  delete data.memory;
  const trace = validTrace(data);
  assert.equal(trace.nodes.length, 33);
  assert.deepEqual(trace.memory, []);
});

for (const { at, value, says } of refused) {
  test(`a value that cannot be is refused with its place: ${says}`, () => {
    const data: Record<string | number, never> = whole();
    let place = data;
    for (const key of at.slice(0, -1)) place = place[key] as typeof data;
    place[at.at(-1) as string] = value as never;
    assert.throws(
      () => validTrace(data),
      (error: Error) => error instanceof PayloadError && error.message.startsWith(says),
    );
  });
}

test("what is no object, or no JSON, or damaged, is refused", async () => {
  for (const data of [null, 3, [], "text"]) assert.throws(() => validTrace(data), PayloadError);
  const bytes = new Uint8Array(gzipSync(JSON.stringify(whole())));
  await assert.rejects(readTrace(bytes.slice(0, -20)), /The gzip data is damaged/);
  await assert.rejects(readTrace(new TextEncoder().encode("null")), /version undefined/);
  await assert.rejects(readTrace(new TextEncoder().encode("{")), SyntaxError);
});
