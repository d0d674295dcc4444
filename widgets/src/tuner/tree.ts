// The tree of everything that was tried on a kernel: an opt a row, its time as colour, failures with their reasons.

import { button, h } from "../dom";
import { optMeaning } from "../explaining";
import { count, duration, languageName } from "../format";
import type { Branch, KernelVariant } from "../model";
import { type WhatIf, isWhole, variantOf } from "../whatif";

const MOST_CHILDREN = 8; // of one branch: a search tries dozens
const LABELS: Record<string, string> = {
  "as captured": "the kernel as this capture compiled it",
  "no opts": "the loops as the scheduler wrote them",
  heuristics: "what the heuristics choose, without measuring",
  BEAM: "the fastest that the search found",
};

/** What branches are compared by: their times; where none has any, the UOps that one run executes. */
export class Scale {
  readonly fastest: number;
  readonly counted: boolean;
  private readonly slowest: number;

  constructor(branches: readonly Branch[]) {
    this.counted = branches.every((branch) => (variantOf(branch)?.median_us ?? null) === null);
    const times = branches.flatMap((branch) => this.of(branch) ?? []).filter((time) => time > 0);
    this.fastest = Math.min(...times);
    this.slowest = Math.max(...times);
  }

  /** The branch's number; null where it has none. */
  of(branch: Branch): number | null {
    const variant = variantOf(branch);
    return this.counted ? variant?.uops || null : (variant?.median_us ?? null);
  }

  /** Where a number stands between the least (0) and the most (1), by its logarithm. */
  heat(us: number): number {
    if (!(this.slowest > this.fastest)) return 0;
    return Math.log(us / this.fastest) / Math.log(this.slowest / this.fastest);
  }
}

export class TreeList {
  readonly element = h("div", { class: "tuner-tree scroll", role: "tree", "aria-label": "What was tried" });
  private readonly opened = new Set<number>();

  constructor(
    private readonly whatIf: WhatIf,
    private readonly redraw: () => void,
  ) {}

  draw(kernel: number): void {
    const branches = this.whatIf.of(kernel);
    const scale = new Scale(branches);
    const children = new Map<number | null, Branch[]>();
    for (const branch of branches) children.set(branch.parent, [...(children.get(branch.parent) ?? []), branch]);
    const rows: HTMLElement[] = [];
    const walk = (parent: number | null, depth: number): void => {
      const all = sorted(children.get(parent) ?? [], scale);
      const shown = parent === null || this.opened.has(parent) ? all : this.those(kernel, all, children);
      for (const branch of shown) {
        rows.push(this.row(kernel, branch, depth, scale));
        walk(branch.id, depth + 1);
      }
      if (shown.length < all.length && parent !== null) rows.push(this.rest(parent, depth, all.length - shown.length));
    };
    walk(null, 0);
    const scrolled = this.element.scrollTop;
    const focused = this.element.contains(document.activeElement);
    this.element.replaceChildren(...rows);
    this.element.scrollTop = scrolled;
    if (focused) this.element.querySelector<HTMLElement>('[aria-selected="true"]')?.focus({ preventScroll: true });
  }

  /** Of many children the fastest; and where the reader is, what is known by a name, and what was gone on from. */
  private those(kernel: number, all: Branch[], children: Map<number | null, Branch[]>): Branch[] {
    if (all.length <= MOST_CHILDREN) return all;
    const at = this.whatIf.at(kernel)?.id;
    return all.filter((one, i) => i < MOST_CHILDREN || one.id === at || one.labels.length > 0 || children.has(one.id));
  }

  private rest(parent: number, depth: number, left: number): HTMLElement {
    const open = (): void => {
      this.opened.add(parent);
      this.redraw();
    };
    const more = button(`${left} more, slower`, "Show all that was tried from here", open, "quiet");
    return h("div", { class: "tuner-rest", style: `--depth:${depth}` }, more);
  }

  private row(kernel: number, branch: Branch, depth: number, scale: Scale): HTMLElement {
    const variant = variantOf(branch);
    const time = scale.of(branch);
    const active = this.whatIf.at(kernel)?.id === branch.id;
    const compared = this.whatIf.base(kernel)?.id === branch.id;
    const failed = branch.status === "failed";
    const reachable = isWhole(branch) || (!failed && this.whatIf.send !== null);
    const choose = (): void => this.whatIf.go(branch);
    const words = this.nameBelow(branch);
    const labels = branch.labels.filter((label) => label !== words);
    const compare = button(
      "⇄",
      compared ? "Compare with the branch before instead" : "Compare line by line with this one",
      () => this.whatIf.compareWith(kernel, compared && this.whatIf.hasOwnBase(kernel) ? null : branch),
    );
    compare.setAttribute("aria-pressed", String(compared));
    compare.className = "quiet tuner-compare";
    compare.addEventListener("click", (event) => event.stopPropagation()); // the row itself goes there
    const heat = time === null ? null : `--heat:${Math.round(scale.heat(time) * 100)}%`;
    const hint = [words, ...(variant?.opts ?? []).map((opt) => optMeaning(opt) || opt), branch.reason]
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
      h("span", { class: "tuner-heat", style: heat, "aria-hidden": "true" }, failed ? "✕" : ""),
      h("span", { class: "tuner-opt" }, words),
      ...labels.map((label) => h("span", { class: "chip", title: LABELS[label] ?? null }, label)),
      h("span", { class: "space" }),
      failed ? h("span", { class: "tuner-reason" }, branch.reason) : null,
      failed ? null : h("span", { class: "tuner-time num" }, timeText(variant, time, scale.counted)),
      failed || time === null || isWhole(branch)
        ? null
        : h(
            "span",
            { class: "faint", title: "the best run of a search; what is opened is timed anew, and shows its median" },
            "best",
          ),
      failed || !isWhole(branch) || active ? null : compare,
    );
  }

  /** Of a branch with many opts those that its parent has not. */
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

/** What a branch is called in its tree: by the opt that led there, else by what it is known for. */
export function nameOf(branch: Branch): string {
  const { kind, arguments: given } = branch.command;
  const values = Object.fromEntries(given);
  if (kind === "ApplyOpt") return String(values.opt);
  if (kind === "UndoOpt") return "one opt less";
  if (kind === "Edit" && values.stage !== "opts") return `edited ${languageName(String(values.stage))}`;
  if (branch.labels.length > 0) return branch.labels[0];
  const opts = values.opts ?? values.text; // set, or edited as text
  return opts === undefined ? kind : String(opts).split(/\s+/).join(" ").trim() || "no opts";
}

function timeText(variant: KernelVariant | null, time: number | null, counted: boolean): string {
  if (time !== null && !counted) return duration(time);
  return variant === null || variant.uops === 0 ? "not timed" : uopsText(variant.uops);
}

/** "4,036 UOps" */
export function uopsText(uops: number): string {
  return count(uops, "UOp");
}

function sorted(branches: Branch[], scale: Scale): Branch[] {
  const time = (branch: Branch): number =>
    branch.status === "failed" ? Infinity : (scale.of(branch) ?? Number.MAX_VALUE);
  return [...branches].sort((a, b) => time(a) - time(b) || a.id - b.id);
}
