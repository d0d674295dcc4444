import assert from "node:assert/strict";
import { test } from "node:test";
import { TraceIndex, computeThroughput } from "../src/trace_index";
import { TRACE } from "./sample_trace";

const sorted = (ids: Iterable<number>): number[] => [...ids].sort((a, b) => a - b);

test("what is related follows links both ways, but not down again from an ancestor", () => {
  const index = new TraceIndex(TRACE);
  assert.deepEqual(sorted(index.related([2])), [0, 1, 2, 3, 4]);
  assert.deepEqual(sorted(index.related([3])), [0, 1, 2, 3]);
});

test("a walk for one kernel keeps out of another kernel's history", () => {
  const index = new TraceIndex(TRACE);
  assert.deepEqual(sorted(index.related([3], 0)), [0, 2, 3]);
  assert.deepEqual(sorted(index.related([1], 1)), [1, 2, 4]);
});

test("a Python line knows the nodes it built, and a node the nearest line behind it", () => {
  const index = new TraceIndex(TRACE);
  assert.deepEqual(index.nodesOfLine(0, 2), [1]);
  assert.equal(index.frameOf(3, 0)?.line, 1);
  assert.equal(index.frameOf(4, 1)?.line, 2);
});

test("a rewrite history holds the firings behind a node, and no rebuilds", () => {
  const index = new TraceIndex(TRACE);
  const told = index.rewriteHistory(3, 0).map(({ stage: of, step, firing }) => [of.id, step, firing.after]);
  assert.deepEqual(told, [[0, 1, 3]]);
});

test("a stage ends, for the reader, where its last rule fired", () => {
  const index = new TraceIndex(TRACE);
  assert.equal(index.endOf(TRACE.stages[0]), 1);
  assert.equal(index.firings(TRACE.stages[0]), 1);
});

test("a kernel that reuses a program shows that program's listings", () => {
  assert.deepEqual(new TraceIndex(TRACE).programsOf(1), [TRACE.programs[0]]);
});

test("throughput is operations and bytes over the median", () => {
  assert.deepEqual(computeThroughput(TRACE.kernels[0], TRACE.runs[0]), { gflops: 1, gbps: 0.25 });
  assert.deepEqual(computeThroughput(TRACE.kernels[0], null), { gflops: null, gbps: null });
});

test("reachable nodes come sources first, each once", () => {
  assert.deepEqual(new TraceIndex(TRACE).reachable([4]), [2, 4]);
});
