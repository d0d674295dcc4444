import assert from "node:assert/strict";
import { test } from "node:test";
import { type LabelPlace, placeLabels } from "../src/label_placement";
import { PositionHistory, linkOf, readLink } from "../src/links";
import type { KernelInfo, Trace } from "../src/model";
import { TraceIndex } from "../src/trace_index";
import { type Cursor, PANELS } from "../src/store";
import { listChapters, nestOf, findSlowest } from "../src/story_chapters";
import { chooseLargestFirings, isLawNeeded } from "../src/story/firing_impact";
import { foldLines, findLoops } from "../src/story/inner_loop";
import { addKeys, groupOpts, tileOf } from "../src/story/loops";
import { expressionsOf, buildOpGraph, productOf } from "../src/story/op_graph";
import { columnsOf, fitBoxes, heightOf, placeBoxes } from "../src/story/box_layout";
import { listProgramLines } from "../src/story/python";
import { type Area, EdgeRouter } from "../src/story/edge_router";

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
  stage_texts: [],
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

test("a trace has the pages of which it can tell something, each at its place in the workbench", () => {
  const told = listChapters(new TraceIndex(TRACE)).map(({ key, place }) => [key, place.place]);
  assert.deepEqual(told, [
    ["python", "python"],
    ["tensors", "lazy"],
    ["kernels", "kernels"],
    ["loops", "passes"],
    ["rewrites", "passes"],
    ["code", "code"],
    ["time", "run"],
  ]);
  assert.equal(listChapters(new TraceIndex(TRACE)).at(-1)?.kernel, 1);
});

test("a trace tells only what it has", () => {
  const bare = { ...TRACE, kernels: [], runs: [], programs: [], stages: [] } as unknown as Trace;
  assert.deepEqual(
    listChapters(new TraceIndex(bare)).map(({ key }) => key),
    ["python", "tensors"],
  );
  assert.equal(findSlowest(new TraceIndex(bare)), null);
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
  const trail = new PositionHistory(
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

type Step = Parameters<typeof groupOpts>[0][number];

function opted(opt: string, median_us: number | null): Step {
  return { opt, median_us, nest: [], axes: [], low_us: null, high_us: null, samples: 20, note: "" };
}

function grouped(...steps: Step[]): string[] {
  return groupOpts(steps).map(({ opts }) => opts.join(" "));
}

test("an opt that changes the time by less than a tenth is shown together with the next", () => {
  assert.deepEqual(grouped(opted("", 100), opted("A", 50), opted("B", 48), opted("C", 20)), ["", "A", "B C"]);
  assert.deepEqual(grouped(opted("", 100), opted("A", 50), opted("B", 49)), ["", "A B"]); // there is no next one
  assert.deepEqual(grouped(opted("", 100), opted("A", 95)), ["", "A"]);
  assert.deepEqual(grouped(opted("", 100), opted("A", 150)), ["", "A"]); // slower is a change too
});

test("opts without times are shown one by one", () => {
  assert.deepEqual(grouped(opted("", null), opted("A", null), opted("B", null)), ["", "A", "B"]);
});

test("a tile is the part of the output that one step computes", () => {
  const axes: Step["axes"] = [
    ["g0", "global", 64],
    ["g1", "global", 32],
    ["r2", "reduce", 48],
  ];
  const sizes = (...opts: string[]): number[] => {
    const { tileRows, tileColumns, lanes } = tileOf(axes, opts)!;
    return [tileRows, tileColumns, lanes];
  };
  assert.deepEqual(sizes(), [1, 1, 1]);
  assert.deepEqual(sizes("VECTOR(1, 16)"), [1, 16, 16]);
  assert.deepEqual(sizes("VECTOR(1, 16)", "UPCAST(1, 2)", "UPCAST(0, 8)", "UNROLL(2, 4)"), [8, 32, 16]);
  assert.equal(tileOf(axes, ["THREAD(0)"])!.threads, true);
  assert.equal(tileOf([["r0", "reduce", 9]], []), null);
});

test("rows of a nest keep their keys where loops of one name stand twice", () => {
  const line = (text: string, kind: string): { depth: number; text: string; kind: string } => ({
    depth: 0,
    text,
    kind,
  });
  const rows = addKeys([line("for v1 in range(4)", "vector"), line("a = 1", ""), line("for v1 in range(4)", "vector")]);
  assert.equal(new Set(rows.map(({ key }) => key)).size, 3);
});

test("what reads comes after what it reads, and an input stands right before its first reader", () => {
  assert.deepEqual(columnsOf([[], [0], [1], [], [2, 3]]), [0, 1, 2, 2, 3]);
  const chain = Array.from({ length: 6 }, (_, i) => (i === 0 ? [] : [i - 1]));
  const size = { w: 100, h: 40, gapX: 20, gapY: 10 };
  assert.equal(new Set(placeBoxes(chain, { width: 800, height: 60 }, size)!.centers.map(([, y]) => y)).size, 1);
  assert.equal(new Set(placeBoxes(chain, { width: 400, height: 200 }, size)!.centers.map(([, y]) => y)).size, 2);
  assert.equal(placeBoxes(chain, { width: 400, height: 60 }, size), null);
});

test("boxes that no canvas of that height holds stand at the top of a higher one", () => {
  const fan = [[], [], [], [], [0, 1, 2, 3]];
  const sizes = [{ w: 100, h: 40, gapX: 20, gapY: 10 }];
  assert.equal(fitBoxes(fan, { width: 400, height: 100 }, sizes), null);
  const found = fitBoxes(fan, { width: 400, height: Number.POSITIVE_INFINITY }, sizes)!;
  const tops = found.centers.map(([, y]) => y - 20);
  assert.ok(Math.min(...tops) >= 0 && Math.min(...tops) <= 20);
  assert.ok(heightOf(found) >= 200 && heightOf(found) <= 240);
});

test("the loops of a listing are found by braces, by jumps, or by indentation", () => {
  const program = (language: string, ...texts: string[]): Parameters<typeof findLoops>[0] =>
    ({ language, lines: texts.map((text) => ({ text, nodes: [] })) }) as unknown as Parameters<typeof findLoops>[0];
  assert.deepEqual(findLoops(program("c", "void f() {", "for (;;) {", "a;", "}", "}")), [[1, 3]]);
  assert.deepEqual(findLoops(program("asm", ".L1:", "add", ".L2:", "mul", "jl .L2", "jl .L1")), [
    [2, 4],
    [0, 5],
  ]);
  assert.deepEqual(findLoops(program("python", "for i in x:", "  a", "b")), [[0, 1]]);
});

test("lines that do not fit are folded in the middle", () => {
  const lines = Array.from({ length: 20 }, (_, lineNumber) => ({ lineNumber, text: "", role: null, nodes: [] }));
  const shown = foldLines(lines, 8);
  assert.equal(shown.length, 8);
  assert.deepEqual(
    shown.flatMap((one) => ("fold" in one ? [one.fold] : [])),
    [13],
  );
  assert.equal(foldLines(lines, 20).length, 20);
});

/** (x @ w + b).softmax() in small: a product, its sum, an addition. */
function product(): TraceIndex {
  const text = "y = x @ w + b";
  const node = (id: number, op: string, src: number[], shape: number[], user: number | null, call = ""): object => {
    const group = { BUFFER: "buffer", EXPAND: "movement", REDUCE_AXIS: "reduce" }[op] ?? "alu";
    const detail = op === "REDUCE_AXIS" ? "ADD over 2 → 4×3×1" : "";
    const name = ["x", "w", "b"][id] ?? "";
    const calls = call === "" ? [] : [call];
    return {
      ...lazy(id, group, user, calls),
      op,
      src,
      shape,
      detail,
      name,
      scope: null,
      backward: false,
      dtype: "float32",
    };
  };
  const nodes = [
    node(0, "BUFFER", [], [4, 5], null),
    node(1, "BUFFER", [], [5, 3], null),
    node(2, "BUFFER", [], [3], null),
    node(3, "EXPAND", [0], [4, 3, 5], 0, "__matmul__"),
    node(4, "EXPAND", [1], [4, 3, 5], 0, "__matmul__"),
    node(5, "MUL", [3, 4], [4, 3, 5], 0, "__matmul__"),
    node(6, "REDUCE_AXIS", [5], [4, 3, 1], 0, "__matmul__"),
    node(7, "EXPAND", [2], [4, 3], 1, "__add__"),
    node(8, "ADD", [6, 7], [4, 3], 1, "__add__"),
  ];
  const frames = [
    { id: 0, source: 0, line: 1, function: "f", span: [1, 4, 1, 9] },
    { id: 1, source: 0, line: 1, function: "f", span: [1, 4, 1, 13] },
  ];
  return new TraceIndex({
    ...TRACE,
    nodes,
    frames,
    sources: [{ id: 0, name: "f", text }],
    kernels: [],
    scopes: [],
  } as unknown as Trace);
}

test("an expression goes on where another one ends, and keeps its own letters", () => {
  const index = product();
  assert.deepEqual(
    expressionsOf(index).map(({ text, short }) => [text, short]),
    [
      ["x @ w", "x @ w"],
      ["x @ w + b", "+ b"],
    ],
  );
  const [line] = listProgramLines(buildOpGraph(index), index.trace.sources);
  assert.deepEqual(
    line.pieces.map(({ text, expression }) => [text, expression]),
    [
      ["x @ w", 0],
      [" ", null],
      ["+ b", 1],
    ],
  );
});

test("views are on the edges, and a product is a repeated multiply and a sum", () => {
  const graph = buildOpGraph(product());
  assert.deepEqual(
    graph.ops.map(({ label, shape }) => [label, shape]),
    [
      ["x", "4×5"],
      ["w", "5×3"],
      ["b", "3"],
      ["× multiply", "4×3×5"],
      ["Σ of products", "4×3"],
      ["+ add", "4×3"],
    ],
  );
  assert.deepEqual(graph.ops[3].sources, [
    { op: 0, view: "repeat 3×" },
    { op: 1, view: "repeat 4×" },
  ]);
  const found = productOf(graph)!;
  assert.deepEqual([found.multiply, found.sum, found.each, found.isWindowed], [3, 4, 5, false]);
});

test("a firing that makes other kinds of operations comes before one that only folds a constant", () => {
  const uop = (id: number, op: string, src: number[]): object => ({
    id,
    kind: "uop",
    op,
    src,
    dtype: "float32",
    group: "alu",
  });
  const nodes = [
    uop(0, "LOAD", []),
    uop(1, "ADD", [0, 0]),
    uop(2, "MUL", [0, 0]),
    uop(3, "EXP", [0]),
    uop(4, "MULACC", [0, 2]),
    uop(5, "SCALE", [4]),
  ];
  const rules = [
    { id: 0, name: "fold", law: "n + n → 2n", doc: "" },
    { id: 1, name: "exp_rule", law: "exp(x)  →  e to the x", doc: "e to the x. More." },
  ];
  const steps = [
    { rule: 0, before: 1, after: 2, at_us: 0 },
    { rule: 1, before: 3, after: 5, at_us: 0 },
    { rule: 0, before: 1, after: 2, at_us: 0 },
  ];
  const programs = [{ id: 0, kernel: 0, language: "uops", lines: [{ text: "", nodes: [0, 2, 4, 5] }] }];
  const trace = {
    ...TRACE,
    nodes,
    rules,
    stage_texts: [],
    stages: [stage(0, { kernel: 0, steps })],
    programs,
    kernels: [kernel(0, [])],
  };
  const [best, ...others] = chooseLargestFirings(new TraceIndex(trace as unknown as Trace), 1);
  assert.deepEqual([best.rule.name, best.position, others.length], ["exp_rule", 2, 0]);
  const all = chooseLargestFirings(new TraceIndex(trace as unknown as Trace));
  assert.deepEqual(
    all.map(({ rule, times }) => [rule.name, times]),
    [
      ["fold", 2],
      ["exp_rule", 1],
    ],
  );
  assert.deepEqual(
    all.map(({ rule }) => isLawNeeded(rule)),
    [true, false],
  );
});

test("what was requested before the capture is an input, and how it is computed is left out", () => {
  const { trace } = product();
  const nodes = trace.nodes.map((node) => {
    if (node.id === 0) return { ...node, op: "MUL", group: "alu", src: [9, 9] }; // x has no values yet
    if (node.id === 1) return { ...node, name: "", op: "RESHAPE", group: "movement", src: [10] };
    return node;
  });
  const more = [
    { ...trace.nodes[0], id: 9, name: "" },
    { ...trace.nodes[8], id: 10, name: "w", src: [9, 9], calls: [], user: null },
  ];
  const graph = buildOpGraph(new TraceIndex({ ...trace, nodes: [...nodes, ...more] } as unknown as Trace));
  const shown = graph.ops.filter(({ sources, kind }) => sources.length > 0 || kind === "input");
  const named = shown.map(({ label, kind }) => [label, kind]);
  assert.deepEqual(named.slice(0, 3), [
    ["x", "input"],
    ["w", "input"],
    ["b", "input"],
  ]);
  const multiply = graph.ops.find(({ label }) => label === "× multiply")!;
  assert.deepEqual(
    multiply.sources.map(({ op, view }) => [graph.ops[op].label, view]),
    [
      ["x", "repeat 3×"],
      ["w", "repeat 4×"],
    ],
  );
  assert.ok(!graph.opOf.has(10));
});

test("ways go around boxes, and are straight where nothing lies between", () => {
  let seed = 7;
  const random = (most: number): number => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed % most;
  };
  for (let round = 0; round < 20; round += 1) {
    const boxes = new Map<string, Area>();
    for (let column = 0; column < 6; column += 1)
      for (let row = 0; row < 1 + random(4); row += 1)
        boxes.set(`${column} ${row}`, { x: 60 + column * 130, y: 40 + row * 62 + random(12), w: 104, h: 46 });
    const ways = new EdgeRouter(boxes);
    const names = [...boxes.keys()];
    for (let i = 0; i < 12; i += 1) {
      const [from, to] = [names[random(names.length)], names[random(names.length)]];
      if (Number(from[0]) >= Number(to[0])) continue;
      const way = ways.route(from, to)!;
      const hit = names.filter((name) => {
        const { x, y, w, h } = boxes.get(name)!;
        return way.points.some(([px, py]) => Math.abs(px - x) < w / 2 - 1 && Math.abs(py - y) < h / 2 - 1);
      });
      assert.deepEqual(hit, [], `${from} > ${to}`);
      for (const [name, [px, py]] of [
        [from, way.points[0]],
        [to, way.points.at(-1)!],
      ] as const) {
        const { x, y, w, h } = boxes.get(name)!;
        assert.ok(Math.max(Math.abs(px - x) - w / 2, Math.abs(py - y) - h / 2) < 1.1, "it ends at the box");
      }
    }
  }
  const alone = new EdgeRouter(
    new Map([
      ["a", { x: 50, y: 50, w: 60, h: 30 }],
      ["b", { x: 250, y: 50, w: 60, h: 30 }],
    ]),
  );
  assert.match(alone.route("a", "b")!.d, /^M80.0 50.0C/);
  assert.equal(alone.route("a", "c"), null);
});

test("labels stand apart where there is room", () => {
  const places = [0, 14, 40].map((y): LabelPlace => [100, y, 0]);
  const found = placeLabels(
    [
      ["one label", places],
      ["another", places],
      ["third", places],
    ],
    { points: [[100, 0]] },
  );
  assert.deepEqual(
    found.map(([, y]) => y),
    [40, 14, 0],
  );
});
