// The tree of a kernel's branches: one row per opt, the time as color, failures with their reasons.

import { button, h } from "../dom";
import { describeOpt } from "../term_meanings";
import { count, duration, languageName } from "../format";
import { baseText, ratioText, timeText } from "./time_comparison";
import type { Branch, KernelVariant } from "../model";
import { type WhatIf, isSearched, isFull, variantOf } from "../what_if";

const MOST_CHILDREN = 8; // children of one branch: a search tries dozens
const LABELS: Record<string, string> = {
  "as captured": "the kernel as this capture compiled it",
  "no opts": "the loops as the scheduler wrote them",
  heuristics: "what the heuristics choose, without measuring",
  BEAM: "the fastest candidate of the search",
};

/**
 * The numbers by which branches are compared: their times divided by those of the captured kernel, measured
 * alternately, since times of different branches do not compare. Without times, the UOps that one run executes.
 */
export class TimeScale {
  readonly fastest: number;
  readonly counted: boolean;
  private readonly slowest: number;

  constructor(branches: readonly Branch[]) {
    this.counted = branches.every((branch) => (variantOf(branch)?.median_us ?? null) === null);
    const times = branches.flatMap((branch) => this.of(branch) ?? []).filter((time) => time > 0);
    this.fastest = Math.min(...times);
    this.slowest = Math.max(...times);
  }

  /** Returns the branch's number; null if it has none. */
  of(branch: Branch): number | null {
    const variant = variantOf(branch);
    if (this.counted) return variant?.uops || null;
    if (variant === null || variant.median_us === null) return null;
    return branch.edited === null ? divideByBase(variant) : null;
  }

  /** Returns the position of a number between the smallest (0) and the largest (1), by its logarithm. */
  relativeTime(us: number): number {
    if (!(this.slowest > this.fastest)) return 0;
    return Math.log(us / this.fastest) / Math.log(this.slowest / this.fastest);
  }
}

export class TreeList {
  readonly element = h("div", { class: "tuner-tree scroll", role: "tree", "aria-label": "Tried opts" });
  readonly search = h("details", { class: "tuner-search", open: true });
  private readonly opened = new Set<number>();

  constructor(
    private readonly whatIf: WhatIf,
    private readonly redraw: () => void,
  ) {}

  draw(kernel: number): void {
    const all = this.whatIf.of(kernel);
    const branches = all.filter((branch) => !isSearched(branch));
    const scale = new TimeScale(branches);
    const children = new Map<number | null, Branch[]>();
    for (const branch of branches) {
      const parent = this.parentOf(branch);
      children.set(parent, [...(children.get(parent) ?? []), branch]);
    }
    const rows: HTMLElement[] = [];
    const walk = (parent: number | null, depth: number): void => {
      const all = sortBranches(children.get(parent) ?? [], scale);
      const visibleBranches =
        parent === null || this.opened.has(parent) ? all : this.chooseVisible(kernel, all, children);
      for (const branch of visibleBranches) {
        rows.push(this.makeRow(kernel, branch, depth, scale));
        walk(branch.id, depth + 1);
      }
      if (visibleBranches.length < all.length && parent !== null)
        rows.push(this.makeRest(parent, depth, all.length - visibleBranches.length));
    };
    walk(null, 0);
    const scrolled = this.element.scrollTop;
    const focused = this.element.contains(document.activeElement);
    this.element.replaceChildren(...rows);
    this.element.scrollTop = scrolled;
    this.drawSearch(all);
    if (focused) this.element.querySelector<HTMLElement>('[aria-selected="true"]')?.focus({ preventScroll: true });
  }

  /** Returns the nearest ancestor in the tree. */
  private parentOf(branch: Branch): number | null {
    let ancestor = branch.parent;
    while (ancestor !== null && isSearched(this.whatIf.branches[ancestor]))
      ancestor = this.whatIf.branches[ancestor].parent;
    return ancestor;
  }

  /** Draws the results of a search: its own times, which compare only with each other. */
  private drawSearch(all: readonly Branch[]): void {
    const candidates = all.filter(isSearched);
    const outcome = all.find(({ search }) => search !== null)?.search ?? null;
    this.search.hidden = candidates.length === 0 && outcome === null;
    if (this.search.hidden) return;
    const time = (branch: Branch): number => variantOf(branch)?.median_us ?? Infinity;
    const sorted = [...candidates].sort((a, b) => time(a) - time(b) || a.id - b.id);
    const visibleBranches = this.opened.has(-1) ? sorted : sorted.slice(0, MOST_CHILDREN);
    const more = (): void => {
      this.opened.add(-1);
      this.redraw();
    };
    const left = sorted.length - visibleBranches.length;
    const { before_us: before = null, after_us: after = null } = outcome ?? {};
    const pair =
      before === null || after === null
        ? (outcome?.reason ?? "")
        : `default schedule ${duration(before)}, the search’s choice ${duration(after)}: best samples, measured interleaved.`;
    this.search.replaceChildren(
      h("summary", {}, `Search: ${count(outcome?.tried ?? candidates.length, "candidate")}`),
      pair === "" ? "" : h("p", {}, pair),
      h("p", { class: "faint" }, "Each time is the best sample of the search. Opening a candidate times it again."),
      ...visibleBranches.map((branch) => this.makeCandidate(branch)),
      left > 0 ? button(`${left} more`, "Show all candidates of the search", more, "quiet") : "",
    );
  }

  private makeCandidate(branch: Branch): HTMLElement {
    const failed = branch.status === "failed";
    const variant = variantOf(branch);
    const time = variant?.median_us ?? null;
    const row = button(
      (variant?.opts ?? []).join(" ") || "no opts",
      branch.reason || "Compile and time this candidate",
      () => this.whatIf.go(branch),
      "quiet tuner-candidate",
    );
    row.disabled = failed || this.whatIf.send === null;
    row.dataset.branch = String(branch.id);
    row.append(h("span", { class: "num" }, failed ? "✕" : time === null ? "" : duration(time)));
    return row;
  }

  /** Returns the visible children: the fastest, the current branch, labeled ones, and those with children. */
  private chooseVisible(kernel: number, all: Branch[], children: Map<number | null, Branch[]>): Branch[] {
    if (all.length <= MOST_CHILDREN) return all;
    const currentId = this.whatIf.currentBranch(kernel)?.id;
    return all.filter(
      (branch, i) =>
        i < MOST_CHILDREN || branch.id === currentId || branch.labels.length > 0 || children.has(branch.id),
    );
  }

  private makeRest(parent: number, depth: number, left: number): HTMLElement {
    const open = (): void => {
      this.opened.add(parent);
      this.redraw();
    };
    const more = button(`${left} more, slower`, "Show all branches from here", open, "quiet");
    return h("div", { class: "tuner-rest", style: `--depth:${depth}` }, more);
  }

  private makeRow(kernel: number, branch: Branch, depth: number, scale: TimeScale): HTMLElement {
    const variant = variantOf(branch);
    const time = scale.of(branch);
    const active = this.whatIf.currentBranch(kernel)?.id === branch.id;
    const compared = this.whatIf.base(kernel)?.id === branch.id;
    const failed = branch.status === "failed";
    const reachable = isFull(branch) || (!failed && this.whatIf.send !== null);
    const choose = (): void => this.whatIf.go(branch);
    const words = this.nameBelow(branch);
    const labels = branch.labels.filter((label) => label !== words);
    const compare = button(
      "⇄",
      compared ? "Compare with the parent branch" : "Compare line by line with this one",
      () => this.whatIf.compareWith(kernel, compared && this.whatIf.hasOwnBase(kernel) ? null : branch),
    );
    compare.setAttribute("aria-pressed", String(compared));
    compare.className = "quiet tuner-compare";
    compare.addEventListener("click", (event) => event.stopPropagation()); // a click on the row goes there
    const heatStyle = time === null ? null : `--heat:${Math.round(scale.relativeTime(time) * 100)}%`;
    const hint = [words, ...(variant?.opts ?? []).map((opt) => describeOpt(opt) || opt), branch.reason]
      .filter(Boolean)
      .join("\n");
    return h(
      "div",
      {
        class: ["tuner-row", failed ? "failed" : "", reachable ? "" : "unreachable"].join(" ").trim(),
        role: "treeitem",
        tabindex: active ? 0 : -1,
        "aria-selected": String(active),
        "aria-level": depth + 1,
        "data-branch": branch.id,
        title: hint,
        style: `--depth:${depth}`,
        onclick: choose,
        onkeydown: (event: KeyboardEvent) => this.onKey(event, choose),
      },
      h("span", { class: "tuner-heat", style: heatStyle, "aria-hidden": "true" }, failed ? "✕" : ""),
      h("span", { class: "tuner-opt" }, words),
      ...labels.map((label) => h("span", { class: "chip", title: LABELS[label] ?? null }, label)),
      h("span", { class: "space" }),
      failed ? h("span", { class: "tuner-reason" }, branch.reason) : null,
      failed ? null : h("span", { class: "tuner-time num" }, writeTime(variant, scale.counted)),
      failed || scale.counted || variant === null || variant.base_median_us === null
        ? null
        : h(
            "span",
            { class: "faint num tuner-reference", title: pairText(branch, variant) },
            `vs ${duration(variant.base_median_us)}`,
          ),
      failed || !isFull(branch) || active ? null : compare,
    );
  }

  /** Returns the opts that a branch has in addition to its parent. */
  private nameBelow(branch: Branch): string {
    const mine = variantOf(branch)?.opts ?? [];
    const before = branch.parent === null ? [] : (variantOf(this.whatIf.branches[branch.parent])?.opts ?? []);
    const goesOn = branch.command.kind === "SetOpts" && branch.labels.length === 0 && mine.length > before.length;
    return goesOn && before.every((opt, i) => opt === mine[i]) ? mine.slice(before.length).join(" ") : nameOf(branch);
  }

  private onKey(event: KeyboardEvent, choose: () => void): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Enter" && event.target === event.currentTarget) choose();
    if (step === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const rows = [...this.element.querySelectorAll<HTMLElement>('[role="treeitem"]')];
    rows[rows.indexOf(event.currentTarget as HTMLElement) + step]?.focus();
  }
}

/** Returns the name of a branch in its tree: its last opt, else its label. */
export function nameOf(branch: Branch): string {
  const { kind, arguments: commandArguments } = branch.command;
  const values = Object.fromEntries(commandArguments);
  if (kind === "ApplyOpt") return String(values.opt);
  if (kind === "UndoOpt") return "one opt less";
  if (kind === "Edit" && values.stage !== "opts") return `edited ${languageName(String(values.stage))}`;
  if (branch.labels.length > 0) return branch.labels[0];
  const opts = values.opts ?? values.text; // set, or edited as text
  return opts === undefined ? kind : String(opts).split(/\s+/).join(" ").trim() || "no opts";
}

/** Returns the name of the base that a branch's time was measured with. */
export function nameBase(branch: Branch | null): string {
  return branch?.edited != null && branch.edited.stage !== "opts" ? "before the edit" : "as captured";
}

/** Returns a time divided by that of the captured kernel; null for the captured kernel itself. */
function divideByBase({ median_us, base_median_us }: KernelVariant): number | null {
  if (median_us === null) return null;
  return base_median_us === null || base_median_us === 0 ? 1 : median_us / base_median_us;
}

function pairText(branch: Branch, variant: KernelVariant): string {
  const name = nameBase(branch);
  return `${timeText(variant)}; ${name} ${baseText(variant)}; measured interleaved: ${ratioText(variant, name)}`;
}

function writeTime(variant: KernelVariant | null, counted: boolean): string {
  if (variant !== null && variant.median_us !== null && !counted) return duration(variant.median_us);
  return variant === null || variant.uops === 0 ? "not timed" : uopsText(variant.uops);
}

/** Returns the number of UOps as text: "4,036 UOps" */
export function uopsText(uops: number): string {
  return count(uops, "UOp");
}

function sortBranches(branches: Branch[], scale: TimeScale): Branch[] {
  const time = (branch: Branch): number =>
    branch.status === "failed" ? Infinity : (scale.of(branch) ?? Number.MAX_VALUE);
  return [...branches].sort((a, b) => time(a) - time(b) || a.id - b.id);
}
