// A trace of two kernels for the unit tests, and what it is made of.

import type { Link, Node, Stage, Trace } from "../src/model";

export function node(id: number, kind: string, op: string, src: number[] = [], user: number | null = null): Node {
  const rest = {
    dtype: "float32",
    shape: null,
    arg: "",
    digest: `d${id}`,
    label: op,
    detail: "",
    group: "alu",
    calls: [],
    name: "",
    scope: null,
    backward: false,
  };
  return { id, kind, op, src, user, ...rest };
}

export function stage(id: number, kernel: number | null, steps: Stage["steps"] = []): Stage {
  const rest = {
    decisions: [],
    opts: [],
    candidates: [],
    search: null,
    thread: 0,
    transform: null,
    choices: [],
    started_us: 0,
    elapsed_us: 10,
    parent: null,
  };
  return { id, name: `stage ${id}`, kernel, before: [2], after: [4], steps, ...rest };
}

const link = (src: number, dst: number, of: number | null): Link => ({ src, dst, how: "rewrite", stage: of });

/** LazyBuffers 0 and 1 become the UOp 2 in kernels 0 and 1; it is rewritten to 3 in kernel 0 and to 4 in kernel 1. */
export const TRACE: Trace = {
  version: 1,
  title: "t",
  options: [],
  sources: [{ id: 0, name: "cell", text: "a\nb\n" }],
  frames: [
    { id: 0, source: 0, line: 1, function: "f", span: null },
    { id: 1, source: 0, line: 2, function: "f", span: null },
  ],
  nodes: [
    node(0, "lazybuffer", "MUL", [], 0),
    node(1, "lazybuffer", "ADD", [], 1),
    node(2, "uop", "MUL"),
    node(3, "uop", "SHL"),
    node(4, "uop", "ADD", [2, 2]),
  ],
  transforms: [],
  laws: [],
  ceilings: [],
  rules: [{ id: 0, name: "r", law: "", doc: "", file: "", line: 1, text: "" }],
  stages: [
    stage(0, 0, [
      { rule: 0, before: 2, after: 3, at_us: 0 },
      { rule: null, before: 4, after: 4, at_us: 1 },
    ]),
    stage(1, 1, [{ rule: 0, before: 2, after: 4, at_us: 0 }]),
  ],
  links: [link(0, 2, 0), link(1, 2, 1), link(2, 3, 0), link(2, 4, 1)],
  kernels: [0, 1].map((id) => ({
    id,
    name: `k${id}`,
    device: "X",
    roots: [id],
    nodes: [id],
    buffers: [],
    opts: [],
    axes: [],
    calls: [],
    flops: 2000,
    bytes_moved: 500,
    compile_us: 1,
    cached: false,
    known: "",
    code_bytes: 0,
    not_run: "",
    nest: [],
    bytes_written: 0,
    arithmetic: [],
    title: "",
    same_as: id === 1 ? 0 : null,
  })),
  programs: [{ id: 0, kernel: 0, language: "c", lines: [{ text: "x;", nodes: [3] }], effort: "", branches: false }],
  runs: [
    {
      id: 0,
      kernel: 0,
      times_us: [2],
      median_us: 2,
      low_us: 1,
      high_us: 3,
      started_us: 0,
      first_us: 1,
      warm: true,
      single_us: [],
      waited: null,
    },
  ],
  buffers: [],
  messages: [],
  memory: [],
  scopes: [],
  branches: [],
  recordings: [],
  checks: [],
  stage_texts: [],
  regions: [],
  back_edges: [],
  dialect: null,
  roofs: [],
  module_costs: [],
  figures: [],
  roofline: null,
  kernel_time: null,
  elapsed_time: null,
  fusion_edges: [],
  origins: [],
  outside: [],
  scripts: [],
};
