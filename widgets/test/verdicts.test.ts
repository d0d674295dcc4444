import assert from "node:assert/strict";
import { test } from "node:test";
import { StoredResponses } from "../src/request_channel";
import type { Trace } from "../src/model";
import { TraceIndex } from "../src/trace_index";
import { type Cursor, PANELS, Store } from "../src/store";
import { evidencePlace } from "../src/verdicts";
import { TRACE } from "./sample_trace";

const CURSOR: Cursor = {
  place: "run",
  kernel: 0,
  stage: 0,
  step: 0,
  graph: "lazy",
  panel: "timing",
  tabs: {},
};
const storeOf = (trace: Trace = TRACE): Store => new Store(new TraceIndex(trace), CURSOR);

test("an evidence leads to its panel where Python answers", () => {
  const store = storeOf();
  store.sendRequest = () => Promise.reject(new Error("unused"));
  for (const panel of PANELS.filter((one) => one !== "modules"))
    assert.deepEqual(evidencePlace(store, panel, 0), { panel });
  assert.deepEqual(evidencePlace(store, "gpu", 0), { panel: "warps" });
  assert.deepEqual(evidencePlace(store, "samples", 0), { panel: "timing" });
  assert.deepEqual(evidencePlace(store, "code", 0), { place: "code" });
});

test("an evidence leads nowhere where a page has no such panel, no listing, or does not know the name", () => {
  const store = storeOf();
  for (const panel of ["llvm", "caches", "throughput", "gpu", "another"])
    assert.equal(evidencePlace(store, panel, 0), null, panel);
  assert.deepEqual(evidencePlace(store, "roofline", 0), { panel: "roofline" });
  assert.deepEqual(evidencePlace(store, "timing", undefined), { panel: "timing" });
  assert.equal(evidencePlace(store, "code", undefined), null);
  assert.equal(evidencePlace(storeOf({ ...TRACE, programs: [] }), "code", 0), null);
  assert.equal(evidencePlace(storeOf({ ...TRACE, runs: [] }), "roofline", 0), null);
});

test("a page with a stored response has the panel of that evidence", () => {
  const store = storeOf();
  store.responses = new StoredResponses({ '{"ask":"passes","kernel":0}': {} });
  assert.deepEqual(evidencePlace(store, "llvm", 0), { panel: "llvm" });
});
