// A question goes out once, and its own answer comes back, whatever else is said on the channel.

import assert from "node:assert/strict";
import { test } from "node:test";

import { askOver } from "../src/asking";

type Handler = (content: unknown) => void;

function channel(): {
  sent: { id: string; question: unknown }[];
  say: Handler;
  listeners: Set<Handler>;
  ask: ReturnType<typeof askOver>;
} {
  const sent: { id: string; question: unknown }[] = [];
  const listeners = new Set<Handler>();
  const model = {
    send: (content: unknown) => void sent.push(content as (typeof sent)[number]),
    on: (_: string, handler: Handler) => void listeners.add(handler),
    off: (_: string, handler: Handler) => void listeners.delete(handler),
  };
  const say = (content: unknown): void => [...listeners].forEach((handler) => handler(content));
  return { sent, say, listeners, ask: askOver(model, 50) };
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
  await assert.rejects(ask({ ask: "why", node: 1 }), /Python does not answer: is its kernel running/);
  assert.equal(listeners.size, 0);
});
