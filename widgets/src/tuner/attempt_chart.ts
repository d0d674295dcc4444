// Every attempt as a dot: speed over arithmetic intensity (of loaded bytes), under the machine's ceilings. Without
// ceilings, only dots.

import { h, s } from "../dom";
import { duration, figuresText, groupDigits } from "../format";
import type { Branch, RooflineCeiling, Trace } from "../model";
import { linesOf } from "../roofline_scale";
import { type WhatIf, isSearched, variantOf } from "../what_if";
import { TimeScale, nameOf } from "./branch_tree";

const WIDTH = 300;
const HEIGHT = 186;
const LEFT = 40;
const RIGHT = 10;
const TOP = 24;
const BOTTOM = 30;
const CHARACTER = 6; // width of a character

interface Dot {
  branch: Branch;
  intensity: number;
  gflops: number;
  us: number;
}

/** Returns the dots of a kernel's branches, with the path to the open branch; null if there is nothing to draw. */
export function drawAttempts(
  whatIf: WhatIf,
  kernel: number,
  trace: Pick<Trace, "ceilings" | "roofs">,
): HTMLElement | null {
  const branches = whatIf.of(kernel).filter((branch) => !isSearched(branch));
  const points = branches.flatMap((branch) => dotOf(branch) ?? []);
  if (points.length === 0) return null;
  const ceilings = listCeilings(kernel, trace);
  const x = makeAxis(
    points.map(({ intensity }) => intensity),
    LEFT,
    WIDTH - RIGHT,
  );
  const peak = Math.max(0, ...ceilings.filter(({ kind }) => kind === "arithmetic").map(({ rate }) => rate));
  const y = makeAxis([...points.map(({ gflops }) => gflops), ...(peak > 0 ? [peak] : [])], HEIGHT - BOTTOM, TOP);
  const current = whatIf.currentBranch(kernel);
  const scale = new TimeScale(branches);
  const grid = [
    ...x.ticks.map((value) => s("path", { class: "grid", d: `M${x.positionOf(value)} ${TOP}V${HEIGHT - BOTTOM}` })),
    ...y.ticks.map((value) => s("path", { class: "grid", d: `M${LEFT} ${y.positionOf(value)}H${WIDTH - RIGHT}` })),
    ...x.ticks.map((value) =>
      s("text", { x: x.positionOf(value), y: HEIGHT - BOTTOM + 13, "text-anchor": "middle" }, formatPower(value)),
    ),
    ...y.ticks.map((value) =>
      s("text", { x: LEFT - 5, y: y.positionOf(value) + 4, "text-anchor": "end" }, formatPower(value)),
    ),
    s("text", { x: 4, y: 12, class: "unit" }, "GFLOP/s"),
    s(
      "text",
      { x: WIDTH - RIGHT, y: HEIGHT - 3, class: "unit", "text-anchor": "end" },
      "operations for each byte loaded",
    ),
  ];
  const fastest = Math.max(0, ...ceilings.filter(({ kind }) => kind === "memory").map(({ rate }) => rate));
  const roof = ceilings.flatMap((ceiling) => drawCeiling(ceiling, peak, x, y, ceiling.rate < fastest));
  const way = findOptPath(whatIf, current).flatMap((branch) => points.find((dot) => dot.branch === branch) ?? []);
  const path = way
    .map((dot) => `${x.positionOf(dot.intensity).toFixed(1)} ${y.positionOf(dot.gflops).toFixed(1)}`)
    .join("L");
  const marks = points.map((dot) => {
    const active = dot.branch === current;
    const says = `${nameOf(dot.branch)}: ${figuresText(dot.gflops)} GFLOP/s, ${figuresText(dot.intensity)} operations for each byte loaded, ${duration(dot.us)}`;
    return s(
      "circle",
      {
        class: `dot${active ? " on" : ""}${way.includes(dot) ? " way" : ""}`,
        cx: x.positionOf(dot.intensity).toFixed(1),
        cy: y.positionOf(dot.gflops).toFixed(1),
        r: active ? 6 : way.includes(dot) ? 4.5 : 3,
        style: `--heat:${Math.round(scale.relativeTime(scale.of(dot.branch) ?? 1) * 100)}%`,
        "data-branch": dot.branch.id,
        onclick: () => whatIf.go(dot.branch),
      },
      s("title", {}, says),
    );
  });
  const picture = s(
    "svg",
    {
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      role: "img",
      "aria-label": `Speed against operations per byte loaded: ${points.length} attempts; the largest dot is the current branch`,
    },
    ...grid,
    ...roof,
    path === "" ? null : s("path", { class: "trail", d: `M${path}` }),
    ...marks,
  );
  const caption =
    peak === 0 ? null : h("figcaption", { class: "faint" }, "below the measured ceilings of this machine");
  return h("figure", { class: "tuner-dots" }, picture, caption);
}

/**
 * Returns the roof of a kernel over its loaded bytes: the arithmetic, its working set's memory, and the nearest cache.
 */
function listCeilings(kernel: number, { ceilings, roofs }: Pick<Trace, "ceilings" | "roofs">): RooflineCeiling[] {
  const kernelCeilings = linesOf(roofs.filter((roof) => roof.kernel === kernel));
  const nearest = Math.max(0, ...ceilings.filter(({ kind }) => kind === "memory").map(({ rate }) => rate));
  if (nearest > 0 && kernelCeilings.every(({ kind, rate }) => kind === "arithmetic" || rate < nearest))
    kernelCeilings.push({ name: "L1", kind: "memory", rate: nearest });
  return kernelCeilings;
}

/**
 * Draws a ceiling as a line: arithmetic is horizontal, memory rises with the intensity up to it. The label of the
 * fastest memory is above its line, those of slower ones below, so that they do not meet.
 */
function drawCeiling(
  { name, kind, rate }: RooflineCeiling,
  peak: number,
  x: Axis,
  y: Axis,
  below: boolean,
): SVGElement[] {
  const rise = (intensity: number): number =>
    kind === "arithmetic" ? rate : Math.min(rate * intensity, peak > 0 ? peak : Infinity);
  const start = kind === "arithmetic" ? x.low : Math.max(x.low, y.low / rate);
  const stop = kind === "arithmetic" ? x.high : Math.min(x.high, (peak > 0 ? Math.min(peak, y.high) : y.high) / rate);
  if (start >= stop) return [];
  const words = kind === "arithmetic" ? `${figuresText(rate)} GFLOP/s` : `${name} ${figuresText(rate)} GB/s`;
  const title = kind === "arithmetic" ? `${name}: ${words}` : `${words}. Loads from a nearer cache may exceed it`;
  const [left, right] = [x.positionOf(start), x.positionOf(stop)];
  const [low, high] = [y.positionOf(rise(start)), y.positionOf(rise(stop))];
  const line = s(
    "path",
    { class: `roof ${kind}`, d: `M${left.toFixed(1)} ${low.toFixed(1)}L${right.toFixed(1)} ${high.toFixed(1)}` },
    s("title", {}, title),
  );
  if (kind === "arithmetic")
    return [
      line,
      s("text", { class: "roof-text", x: WIDTH - RIGHT - 3, y: (low - 3).toFixed(1), "text-anchor": "end" }, words),
    ];
  const angle = (Math.atan2(high - low, right - left) * 180) / Math.PI;
  const along = right - left;
  if (along < 40) return [line];
  const label = words.length * CHARACTER <= Math.hypot(along, high - low) ? words : `${figuresText(rate)} GB/s`;
  const labelPosition = [left + along * 0.06, low + (high - low) * 0.06 + (below ? 11 : -3)];
  return [
    line,
    s(
      "text",
      {
        class: "roof-text",
        transform: `translate(${labelPosition[0].toFixed(1)} ${labelPosition[1].toFixed(1)}) rotate(${angle.toFixed(1)})`,
      },
      label,
    ),
  ];
}

function dotOf(branch: Branch): Dot | null {
  const variant = variantOf(branch);
  if (branch.status === "failed" || variant === null || variant.median_us === null || variant.median_us <= 0)
    return null;
  if (variant.flops === 0 || variant.bytes_loaded === 0) return null;
  return {
    branch,
    intensity: variant.flops / variant.bytes_loaded,
    gflops: variant.flops / variant.median_us / 1e3,
    us: variant.median_us,
  };
}

/** Returns the branches that lead to this one, opt by opt, from the branch whose opts were set together. */
function findOptPath(whatIf: WhatIf, branch: Branch | null): Branch[] {
  const way: Branch[] = [];
  for (
    let ancestor = branch;
    ancestor !== null;
    ancestor = ancestor.parent === null ? null : whatIf.branches[ancestor.parent]
  ) {
    way.unshift(ancestor);
    if (!["ApplyOpt", "UndoOpt"].includes(ancestor.command.kind)) break;
  }
  return way;
}

interface Axis {
  positionOf(value: number): number;
  ticks: number[];
  low: number;
  high: number;
}

function makeAxis(values: number[], start: number, stop: number): Axis {
  const low = Math.floor(Math.log2(Math.min(...values)) - 0.3);
  const high = Math.ceil(Math.log2(Math.max(...values)) + 0.3);
  const step = Math.ceil((high - low) / 5);
  const ticks: number[] = [];
  for (let exponent = low; exponent <= high; exponent += step) ticks.push(2 ** exponent);
  return {
    positionOf: (value) => start + ((Math.log2(value) - low) / (high - low)) * (stop - start),
    ticks,
    low: 2 ** low,
    high: 2 ** high,
  };
}

function formatPower(value: number): string {
  return value >= 1 ? groupDigits(value) : `1/${1 / value}`;
}
