// A question goes out once, and its own answer comes back, whatever else is said on the channel.

import assert from "node:assert/strict";
import { test } from "node:test";

import { StoredResponses, sendOverChannel, requestKey } from "../src/request_channel";
import type { Question } from "../src/requests";

type Handler = (content: unknown) => void;

function channel(): {
  sent: { id: string; question: unknown }[];
  say: Handler;
  listeners: Set<Handler>;
  ask: ReturnType<typeof sendOverChannel>;
} {
  const sent: { id: string; question: unknown }[] = [];
  const listeners = new Set<Handler>();
  const model = {
    send: (content: unknown) => void sent.push(content as (typeof sent)[number]),
    on: (_: string, handler: Handler) => void listeners.add(handler),
    off: (_: string, handler: Handler) => void listeners.delete(handler),
  };
  const say = (content: unknown): void => [...listeners].forEach((handler) => handler(content));
  return { sent, say, listeners, ask: sendOverChannel(model, 50) };
}

test("each question gets its own answer, in whatever order they come", async () => {
  const { sent, say, listeners, ask } = channel();
  const [first, second] = [ask({ ask: "why", node: 1 }), ask({ ask: "why", node: 2 })];
  assert.deepEqual(
    sent.map(({ question }) => question),
    [
      { ask: "why", node: 1 },
      { ask: "why", node: 2 },
    ],
  );
  say({ id: "of another page", answer: { what: "?" } });
  say({ id: sent[1].id, answer: { what: "two" } });
  say({ id: sent[0].id, answer: { what: "one" } });
  assert.deepEqual(await Promise.all([first, second]), [{ what: "one" }, { what: "two" }]);
  assert.equal(listeners.size, 0);
});

test("an error is thrown, and silence is told in time", async () => {
  const { sent, say, listeners, ask } = channel();
  const asked = ask({ ask: "why", node: 1 });
  say({ id: sent[0].id, answer: { error: "no such node" } });
  await assert.rejects(asked, /no such node/);
  await assert.rejects(ask({ ask: "why", node: 1 }), /Python does not respond/);
  assert.equal(listeners.size, 0);
});

test("the canonical form leaves defaults out and sorts names", () => {
  const pairs: [Question, string][] = [
    [{ ask: "throughput", kernel: 0, branch: null }, '{"ask":"throughput"}'],
    [{ kernel: 3, branch: 1, ask: "throughput" }, '{"ask":"throughput","branch":1,"kernel":3}'],
    [{ ask: "caches", before: [], after: ["UPCAST(0, 4)"] }, '{"after":["UPCAST(0, 4)"],"ask":"caches"}'],
    [{ ask: "matches", rule: "×" }, '{"ask":"matches","rule":"×"}'],
    [{ ask: "debug", counters: { r1: 2, g0: 1 } }, '{"ask":"debug","counters":{"g0":1,"r1":2}}'],
  ];
  for (const [question, key] of pairs) assert.equal(requestKey(question), key);
});

test("a page finds stored responses by what is requested", () => {
  const found = { rules: ["mine"] };
  const stored = new StoredResponses({ '{"ask":"write","text":"x"}': found, '{"ask":"gpu"}': {} });
  assert.equal(stored.get({ text: "x", ask: "write" }), found);
  assert.equal(stored.get({ ask: "write", text: "y" }), undefined);
  assert.deepEqual(stored.of("write"), [[{ ask: "write", text: "x" }, found]]);
});
