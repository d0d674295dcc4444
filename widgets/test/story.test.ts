import assert from "node:assert/strict";
import { test } from "node:test";
import { Trail, linkOf, readLink } from "../src/links";
import type { KernelInfo, Trace } from "../src/model";
import { TraceIndex } from "../src/provenance";
import { type Cursor, PANELS } from "../src/store";
import { askingLines, chapters, nestOf, slowest, typicalFiring } from "../src/story";

function lazy(id: number, group: string, user: number | null, calls: string[] = []): object {
  return { id, kind: "lazybuffer", op: "X", src: [], group, user, calls, label: "X", detail: "", dtype: "", arg: "" };
}

function kernel(id: number, opts: string[]): object {
  return { id, name: `k${id}`, axes: [["g0", "global", 4]], opts, nodes: [], roots: [], same_as: null, calls: [] };
}

function run(id: number, median_us: number): object {
  return { id, kernel: id, median_us, low_us: median_us, high_us: median_us, times_us: [median_us] };
}

function stage(id: number, more: object): object {
  return {
    id,
    name: `s${id}`,
    kernel: null,
    parent: null,
    before: [],
    after: [],
    steps: [],
    opts: [],
    decisions: [],
    ...more,
  };
}

const TRACE = {
  nodes: [
    lazy(0, "buffer", null),
    lazy(1, "alu", 0, ["__add__"]),
    lazy(2, "movement", 0, ["__add__"]),
    lazy(3, "reduce", 1, ["sum"]),
  ],
  frames: [
    { id: 0, source: 0, line: 2 },
    { id: 1, source: 0, line: 3 },
  ],
  sources: [{ id: 0, text: "import x\ny = x + 1\ny.sum()\n" }],
  rules: [
    { id: 0, name: "f", law: "node → f(node)" },
    { id: 1, name: "mul_one", law: "x * 1 → x" },
  ],
  stages: [
    stage(0, {
      decisions: [
        { node: 3, decision: "realize" },
        { node: 1, decision: "fuse" },
        { node: 2, decision: "keep" },
      ],
    }),
    stage(1, { kernel: 1, opts: [{ opt: "VECTOR(0, 4)", applied: true, reason: "four at once" }] }),
    stage(2, { kernel: 1, steps: [0, 0, 1, null].map((rule) => ({ rule, before: 0, after: 1 })) }),
  ],
  links: [],
  kernels: [kernel(0, []), kernel(1, ["VECTOR(0, 4)"])],
  programs: [
    {
      id: 0,
      kernel: 1,
      language: "c",
      lines: [
        { text: "a", nodes: [3] },
        { text: "b", nodes: [] },
      ],
    },
  ],
  runs: [run(0, 1), run(1, 3)],
} as unknown as Trace;

test("each chapter says what is in the trace", () => {
  const told = chapters(new TraceIndex(TRACE)).map(({ key, sentence }) => [key, sentence]);
  assert.deepEqual(told, [
    ["python", "2 lines of your Python built 3 operations on tensors: 2 by + and 1 by sum."],
    [
      "tensors",
      "They are a graph of 4 nodes: 1 is memory that holds values, 1 only looks at values in another shape and 2 compute.",
    ],
    [
      "kernels",
      "The scheduler makes 2 kernels of them: 1 result gets memory of its own, 1 is computed right where it is read and 1 is kept a row at a time, in scratch memory.",
    ],
    [
      "loops",
      "Kernel 1, the slowest, runs in 1 loop, after 1 optimisation: VECTOR(0, 4). The optimiser on VECTOR(0, 4): “four at once”.",
    ],
    [
      "rewrites",
      "Rules rewrite the loops into what the machine can do: 3 firings of 2 rules in 1 pass. This is the first of mul_one, which fired once.",
    ],
    [
      "code",
      "The kernel written out: 2 lines of C. Of the C, 1 line knows the line of your Python behind it: click one.",
    ],
    ["time", "Both kernels take 4.00 µs, 75.0 % of it in kernel 1 (3.00 µs, 1 cold run)."],
  ]);
});

test("what was there before the capture is told apart from what its lines asked for", () => {
  const nodes = [...TRACE.nodes, lazy(4, "alu", 1), lazy(5, "const", 1)];
  const index = new TraceIndex({ ...TRACE, nodes } as unknown as Trace);
  assert.match(
    chapters(index)[0].sentence,
    /built 3 operations on tensors: 2 by \+ and 1 by sum\. 2 more were there before\.$/,
  );
  assert.deepEqual(
    askingLines(index).map(({ asked, earlier }) => [asked, earlier]),
    [
      [0, 0],
      [2, 0],
      [1, 2],
    ],
  );
});

test("a trace tells only what it has", () => {
  const bare = { ...TRACE, kernels: [], runs: [], programs: [], stages: [] } as unknown as Trace;
  assert.deepEqual(
    chapters(new TraceIndex(bare)).map(({ key }) => key),
    ["python", "tensors"],
  );
  assert.equal(slowest(new TraceIndex(bare)), null);
});

test("the firing that is shown is of a rule whose law says something", () => {
  const index = new TraceIndex(TRACE);
  assert.equal(typicalFiring(index, TRACE.kernels[1])?.at, 3);
  assert.equal(typicalFiring(index, TRACE.kernels[0]), null);
});

test("a short source is shown whole, a long one by the lines that asked for something", () => {
  const index = new TraceIndex(TRACE);
  assert.deepEqual(
    askingLines(index).map(({ line, asked }) => [line, asked]),
    [
      [1, 0],
      [2, 2],
      [3, 1],
    ],
  );
  assert.deepEqual(
    askingLines(index, 2).map(({ line }) => line),
    [2, 3],
  );
});

const CURSOR: Cursor = { place: "passes", kernel: 1, stage: 4, step: 2, graph: "uops", panel: "rewrites", tabs: {} };

test("a link is read as what it was made of", () => {
  const link = linkOf(CURSOR, [7, 9], null);
  assert.equal(link, "#stage=4&step=2&kernel=1&graph=uops&place=passes&panel=rewrites&node=7,9");
  const { tabs: _, ...cursor } = CURSOR;
  assert.deepEqual(readLink(link), { cursor, selected: [7, 9], story: null });
  assert.deepEqual(readLink(linkOf(CURSOR, [], "code")), { cursor: {}, selected: null, story: "code" });
});

test("every panel has a link", () => {
  for (const panel of PANELS) assert.equal(readLink(linkOf({ ...CURSOR, panel }, [], null))?.cursor.panel, panel);
});

test("what is no link, or makes no sense, is left out", () => {
  assert.equal(readLink(""), null);
  assert.equal(readLink("#section-2"), null);
  assert.deepEqual(readLink("#stage=x&place=moon&node=1,b,3"), { cursor: {}, selected: [1, 3], story: null });
});

test("a trail goes back and on, and steps of one stage are one place", () => {
  const seen: string[] = [];
  let at = "#stage=1&step=0";
  const trail = new Trail(
    false,
    (link) => {
      at = link;
      seen.push(link);
    },
    () => at,
  );
  const visit = (link: string): void => {
    at = link;
    trail.note();
  };
  ["#stage=1&step=5", "#stage=2&step=0", "#stage=3&step=0"].forEach(visit);
  trail.go(-1);
  trail.go(-1);
  trail.go(-1);
  trail.go(1);
  assert.deepEqual(seen, ["#stage=2&step=0", "#stage=1&step=5", "#stage=2&step=0"]);
  visit("#stage=9&step=0");
  trail.go(1);
  trail.go(-1);
  assert.equal(seen.at(-1), "#stage=2&step=0");
});

test("the loops of a kernel stand as the program runs them; of a trace without them, its axes in each other", () => {
  const nest = [
    { depth: 0, text: "for g0 in range(4)", kind: "global" },
    { depth: 1, text: "data0[g0] = 1", kind: "" },
  ];
  const index = {
    trace: {
      kernels: [
        { ...kernel(0, []), nest },
        { ...kernel(1, []), nest: [], same_as: 0 },
      ],
    },
  } as unknown as TraceIndex;
  for (const one of index.trace.kernels) assert.deepEqual(nestOf(index, one), nest);
  const old = { ...kernel(2, []), nest: [], calls: ["__matmul__"] } as unknown as KernelInfo;
  assert.deepEqual(nestOf(index, old), [nest[0], { depth: 1, text: "one step of @", kind: "" }]);
});

test("more opts than a sentence has room for are counted", () => {
  const opts = ["A(0, 1)", "B(0, 1)", "C(0, 1)", "D(0, 1)", "E(0, 1)"];
  const index = new TraceIndex({ ...TRACE, kernels: [TRACE.kernels[0], { ...TRACE.kernels[1], opts }] } as Trace);
  assert.match(
    chapters(index).find(({ key }) => key === "loops")!.sentence,
    /after 5 optimisations: A\(0, 1\), B\(0, 1\), C\(0, 1\) and 2 more\. /,
  );
});

test("the code chapter shows the listing that it speaks of where only one has room, in words", () => {
  const asm = { id: 1, kernel: 1, language: "asm", lines: [{ text: "ret", nodes: [3] }] };
  const index = new TraceIndex({ ...TRACE, programs: [...TRACE.programs, asm] } as unknown as Trace);
  const { sentence, place } = chapters(index).find(({ key }) => key === "code")!;
  assert.match(sentence, /2 lines of C and 1 line of assembly\. Of the assembly, 1 line knows/);
  assert.deepEqual(place.tabs, { all: "asm" });
});
