import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Layout } from "../src/layout";
import { LayoutWorker } from "../src/layout_worker";
import { type LayoutRequest, arrangeGraph, source } from "../src/layout_unit";

type Message = { data: Layout };

/** A worker that runs when the test starts it. */
class LateWorker {
  static all: LateWorker[] = [];
  onmessage: ((message: Message) => void) | null = null;
  onerror: ((event: { preventDefault(): void }) => void) | null = null;
  request: LayoutRequest | null = null;
  isStopped = false;

  constructor(readonly url: string) {
    LateWorker.all.push(this);
  }

  postMessage(request: LayoutRequest): void {
    this.request = structuredClone(request);
  }

  terminate(): void {
    this.isStopped = true;
  }

  finish(): void {
    const made = new Function(`return (${source})().arrangeGraph`)() as typeof arrangeGraph;
    if (!this.isStopped) this.onmessage!({ data: structuredClone(made(this.request!)) });
  }
}

const chain = (count: number): LayoutRequest => ({
  nodes: Array.from({ length: count }, (_, id) => ({ id, width: 60, height: 30 })),
  edges: Array.from({ length: count - 1 }, (_, id) => ({ src: id, dst: id + 1 })),
});

const had = globalThis.Worker;
Object.assign(globalThis, { Worker: LateWorker });
after(() => Object.assign(globalThis, { Worker: had }));

function watched(): { told: (number | null)[]; made: Layout[]; layouter: LayoutWorker } {
  const told: (number | null)[] = [];
  return { told, made: [], layouter: new LayoutWorker((boxes) => told.push(boxes)) };
}

test("a small graph is laid out at once", () => {
  const { told, made, layouter } = watched();
  layouter.layOut(chain(50), (layout) => made.push(layout));
  assert.equal(made[0].positions.size, 50);
  assert.deepEqual(told, []);
});

test("a large one in a worker, which gives what the page would have made", () => {
  const { told, made, layouter } = watched();
  layouter.layOut(chain(1000), (layout) => made.push(layout));
  assert.deepEqual([made.length, told], [0, [1000]]);
  LateWorker.all.at(-1)!.finish();
  assert.deepEqual(made, [arrangeGraph(chain(1000))]);
  assert.deepEqual(told, [1000, null]);
});

test("a newer graph stops the worker of an older one", () => {
  const { told, made, layouter } = watched();
  layouter.layOut(chain(1000), () => assert.fail("the older one was drawn"));
  const older = LateWorker.all.at(-1)!;
  layouter.layOut(chain(2000), (layout) => made.push(layout));
  assert.ok(older.isStopped);
  LateWorker.all.at(-1)!.finish();
  assert.equal(made[0].positions.size, 2000);
  assert.deepEqual(told, [1000, null, 2000, null]);
});

test("a walk's next step is steady there too", () => {
  const { made, layouter } = watched();
  const previous = new Map(chain(1000).nodes.map(({ id }) => [id, { x: (id % 7) * 100, y: id * 80 }]));
  layouter.layOut({ ...chain(1000), previous, isStep: true }, (layout) => made.push(layout));
  LateWorker.all.at(-1)!.finish();
  assert.deepEqual(made[0].positions, previous);
});

test("where a worker is forbidden, the page lays out itself, and does not ask again", () => {
  const { told, made, layouter } = watched();
  layouter.layOut(chain(1000), (layout) => made.push(layout));
  const count = LateWorker.all.length;
  LateWorker.all.at(-1)!.onerror!({ preventDefault: () => undefined });
  layouter.layOut(chain(1200), (layout) => made.push(layout));
  assert.deepEqual(
    made.map(({ positions }) => positions.size),
    [1000, 1200],
  );
  assert.equal(LateWorker.all.length, count);
  assert.deepEqual(told, [1000, null]);
});
