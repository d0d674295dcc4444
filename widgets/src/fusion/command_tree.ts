// The tree of commands on a schedule: one row per command, the time as color, failures with their reasons.

import { h } from "../dom";
import { duration } from "../format";
import { baseText, ratioText, timeText } from "../tuner/time_comparison";
import type { Branch, ScheduleVariant } from "../model";
import type { TraceIndex } from "../trace_index";
import type { WhatIf } from "../what_if";
import { nodeName } from "./edge_list";

export function makeCommandTree(whatIf: WhatIf, index: TraceIndex, schedule: number): HTMLElement[] {
  const branches = whatIf.ofSchedule(schedule);
  const times = branches.flatMap(({ schedule: variant }) => divideByBase(variant) ?? []);
  const [fastest, slowest] = [Math.min(...times), Math.max(...times)];
  const relativeTime = (us: number): number =>
    slowest > fastest ? Math.round((100 * Math.log(us / fastest)) / Math.log(slowest / fastest)) : 0;
  const rows: HTMLElement[] = [];
  const walk = (parent: number | null, depth: number): void => {
    for (const branch of branches.filter((child) => child.parent === parent)) {
      rows.push(makeRow(whatIf, index, branch, depth, relativeTime, whatIf.atSchedule(schedule)?.id === branch.id));
      walk(branch.id, depth + 1);
    }
  };
  walk(null, 0);
  return rows;
}

function makeRow(
  whatIf: WhatIf,
  index: TraceIndex,
  branch: Branch,
  depth: number,
  relativeTime: (us: number) => number,
  active: boolean,
): HTMLElement {
  const failed = branch.status === "failed";
  const time = branch.schedule?.median_us ?? null;
  const share = divideByBase(branch.schedule);
  const beside = isBase(branch.schedule) ? null : (branch.schedule?.base_median_us ?? null);
  const choose = (): void => whatIf.go(branch);
  const attributes = {
    class: `tuner-row ${failed ? "failed" : ""}`,
    role: "treeitem",
    tabindex: active ? 0 : -1,
    "aria-selected": String(active),
    "aria-level": depth + 1,
    "data-branch": branch.id,
    title: branch.reason || null,
    style: `--depth:${depth}`,
    onclick: choose,
    onkeydown: (event: KeyboardEvent) => onKey(event, choose),
  };
  return h(
    "div",
    attributes,
    h(
      "span",
      {
        class: "tuner-heat",
        style: share === null || failed ? null : `--heat:${relativeTime(share)}%`,
        "aria-hidden": "true",
      },
      failed ? "✕" : "",
    ),
    h("span", { class: "tuner-opt" }, commandName(index, branch)),
    h("span", { class: "space" }),
    failed
      ? h("span", { class: "tuner-reason" }, branch.reason)
      : h("span", { class: "tuner-time num" }, time === null ? "no time" : duration(time)),
    failed || beside === null
      ? null
      : h("span", { class: "faint num tuner-reference", title: pairText(branch.schedule!) }, `vs ${duration(beside)}`),
  );
}

function isBase(variant: ScheduleVariant | null): boolean {
  return variant !== null && variant.cut.length + variant.join.length === 0;
}

/**
 * Returns a time divided by that of the captured schedule, measured alternately. Times of different branches do not
 * compare.
 */
function divideByBase(variant: ScheduleVariant | null): number | null {
  if (variant === null || variant.median_us === null) return null;
  return isBase(variant) || !variant.base_median_us ? 1 : variant.median_us / variant.base_median_us;
}

function pairText(variant: ScheduleVariant): string {
  return `${timeText(variant)}; as captured ${baseText(variant)}; measured interleaved: ${ratioText(variant)}`;
}

function onKey(event: KeyboardEvent, choose: () => void): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (event.key === "Enter") choose();
  if (step === 0) return;
  event.preventDefault();
  event.stopPropagation();
  const row = event.currentTarget as HTMLElement;
  const next = (step > 0 ? row.nextElementSibling : row.previousElementSibling) as HTMLElement | null;
  next?.focus();
}

/** Returns the name of a command: "as captured", "cut EXP #7", "join SUM #3". */
export function commandName(index: TraceIndex, { command, labels }: Branch): string {
  if (labels.length > 0) return labels[0];
  const values = Object.fromEntries(command.arguments);
  return typeof values.src === "number" ? `${command.kind.toLowerCase()} ${nodeName(index, values.src)}` : command.kind;
}
