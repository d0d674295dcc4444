// Sixth page: one inner loop in C and assembly, lines colored by kind, each with its line of Python.

import { type Child, h, replaceChildren, s } from "../dom";
import { count, languageName, truncate } from "../format";
import { readableName } from "../kernel_labels";
import type { KernelInfo } from "../model";
import type { Store } from "../store";
import {
  type InnerLoop,
  type LoopListing,
  type LoopLine,
  type Role,
  type FoldedLine,
  foldLines,
  findInnerLoop,
} from "./inner_loop";
import { type Page, bold, code } from "./page";

const TONE: Record<Role["kind"], string> = {
  address: "tone-alu",
  load: "tone-movement",
  "other load": "tone-memory",
  arithmetic: "tone-reduce",
  store: "tone-removed",
  loop: "tone-loop",
};
const LINE = 19; // pixels of a line
const LEAST = 6;
const MEMORY_READ = /,[^,]*\bptr \[/; // an x86 instruction with a source operand in memory

const SAYS: Record<string, string> = {
  fma: "a × b + c in one instruction, for every lane of the vector.",
  store: "Stores the results in memory.",
  loop: "Advances the counter and begins the next iteration.",
  address: "The address of the next element.",
  arithmetic: "Arithmetic on every lane of the vector.",
};

export class CodePage implements Page {
  readonly element = h("div", { class: "story-code" });
  readonly beat = 1600;
  private readonly loop: InnerLoop | null;
  private readonly python = h("p", { class: "python-line" });
  private readonly left = h("div", { class: "listing", tabindex: 0, role: "group" });
  private readonly right = h("div", { class: "listing", tabindex: 0, role: "group" });
  private readonly ribbons = s("svg", { class: "ribbons", "aria-hidden": "true" });
  private readonly chips = h("div", { class: "role-chips" });
  private readonly says = h("p", { class: "says" });
  private step = 0;
  private readonly sizes = new ResizeObserver(() => this.layOut());

  constructor(
    private readonly store: Store,
    private readonly kernel: KernelInfo,
    private readonly open: (step: number) => void,
  ) {
    this.loop = findInnerLoop(store.index, kernel.id);
    this.element.append(
      this.python,
      h("div", { class: "listings" }, this.left, this.ribbons, this.right),
      h("div", { class: "roles" }, this.chips, this.says),
    );
    this.element.classList.toggle("is-single", this.loop?.left === null);
    this.sizes.observe(this.right);
  }

  private get roles(): readonly Role[] {
    return this.loop?.roles ?? [];
  }

  get count(): number {
    return this.roles.length + 1;
  }

  private layOut(): void {
    if (this.loop === null || this.right.clientHeight === 0) return;
    const rows = Math.max(LEAST, Math.floor((this.right.clientHeight - 34) / LINE));
    this.fill(this.right, this.loop.right, rows);
    if (this.loop.left !== null) this.fill(this.left, this.loop.left, rows);
    replaceChildren(
      this.chips,
      ...this.roles.map((role, i) =>
        h(
          "button",
          {
            type: "button",
            class: `role-chip ${TONE[role.kind]}`,
            "aria-pressed": "false",
            onclick: () => this.open(i + 1),
          },
          role.label,
        ),
      ),
    );
    this.mark();
  }

  private fill(pane: HTMLElement, { language, first, last, lines }: LoopListing, rows: number): void {
    const { store, kernel } = this;
    const visibleLines = foldLines(lines, rows);
    const indent = Math.min(...lines.map(({ text }) => text.length - text.trimStart().length));
    const elements = visibleLines.map((line: FoldedLine) => {
      if ("fold" in line)
        return h("div", { class: "listing-line fold" }, `⋯ ${count(line.fold, "more line")} like these`);
      const { lineNumber, text, role, nodes } = line;
      const words = store.index.withNames(text.slice(indent), kernel.same_as ?? kernel.id);
      const choose = (): void => {
        store.select(nodes);
        if (role !== null) this.open(1 + this.roles.findIndex(({ key }) => key === role.key));
      };
      return h(
        "div",
        {
          class: `listing-line ${role === null ? "" : TONE[role.kind]}`,
          "data-role": role?.key ?? "",
          "data-nodes": nodes.join(" "),
          title: words,
          onclick: choose,
        },
        h("i", {}, String(lineNumber + 1)),
        words,
      );
    });
    const where = `lines ${first}–${last}`;
    pane.setAttribute("aria-label", `${languageName(language)}, ${where}`);
    replaceChildren(
      pane,
      h("h4", {}, languageName(language), h("span", {}, where)),
      h("div", { class: "listing-body" }, ...elements),
    );
  }

  show(step: number): void {
    this.step = step;
    this.mark();
  }

  private mark(): void {
    const role = this.roles[this.step - 1];
    this.element.classList.toggle("is-focused", role !== undefined);
    for (const line of this.element.querySelectorAll<HTMLElement>(".listing-line"))
      line.classList.toggle("on", role !== undefined && line.dataset.role === role.key);
    this.chips
      .querySelectorAll("button")
      .forEach((chip, i) => chip.setAttribute("aria-pressed", String(i === this.step - 1)));
    this.says.textContent =
      role === undefined
        ? "Point at a line, or press ▶."
        : (SAYS[role.key] ??
          `${languageName(this.loop!.right.language)}: ${this.linesOf(role).length} instructions read it.`);
    this.drawPython(role);
    this.drawRibbons();
  }

  private linesOf(role: Role): LoopLine[] {
    return this.loop!.right.lines.filter((line) => line.role?.key === role.key);
  }

  /** Draws the line of Python from which the line comes. */
  private drawPython(role: Role | undefined): void {
    const { index } = this.store;
    const lines = role === undefined ? this.loop?.right.lines : this.linesOf(role);
    const nodes = (lines ?? []).flatMap((line) => [...line.nodes]);
    const frame = nodes
      .map((id) => index.frameOf(id, this.kernel.same_as ?? this.kernel.id))
      .find((frame) => frame !== null);
    const text =
      frame == null ? "" : (index.trace.sources[frame.source]?.text.split("\n")[frame.line - 1] ?? "").trim();
    const span = frame?.span;
    const expressionText =
      span != null && span[0] === span[2]
        ? (index.trace.sources[frame!.source]?.text.split("\n")[span[0] - 1] ?? "").slice(span[1], span[3])
        : "";
    const start = expressionText === "" ? -1 : text.indexOf(expressionText);
    const parts: Child[] =
      start < 0
        ? [text]
        : [text.slice(0, start), h("mark", {}, expressionText), text.slice(start + expressionText.length)];
    replaceChildren(this.python, ...(text === "" ? [] : [h("small", {}, `line ${frame!.line} `), ...parts]));
  }

  /** Draws bands from lines of C to the instructions of the same UOps. */
  private drawRibbons(): void {
    replaceChildren(this.ribbons);
    const box = this.ribbons.getBoundingClientRect();
    if (this.loop?.left === null || box.width < 12) return;
    const right = [...this.right.querySelectorAll<HTMLElement>(".listing-line[data-role]")];
    const role = this.roles[this.step - 1];
    for (const line of this.left.querySelectorAll<HTMLElement>(".listing-line[data-role]")) {
      const nodes = (line.dataset.nodes ?? "").split(" ").filter(Boolean);
      if (nodes.length === 0 || line.dataset.role === "") continue;
      const matches = right.filter(
        (other) =>
          (other.dataset.nodes ?? "").split(" ").some((id) => nodes.includes(id)) &&
          other.dataset.role === line.dataset.role,
      );
      if (matches.length === 0) continue;
      const [a, b, c] = [
        line.getBoundingClientRect(),
        matches[0].getBoundingClientRect(),
        matches[matches.length - 1].getBoundingClientRect(),
      ];
      const [y1, y2, y3, y4] = [a.top - box.top, a.bottom - box.top, b.top - box.top, c.bottom - box.top];
      const m = box.width / 2;
      const d = `M0 ${y1}C${m} ${y1} ${m} ${y3} ${box.width} ${y3}V${y4}C${m} ${y4} ${m} ${y2} 0 ${y2}z`;
      const tone = [...line.classList].find((name) => name.startsWith("tone-")) ?? "";
      const on = role === undefined || line.dataset.role === role.key;
      this.ribbons.append(s("path", { d, class: `${tone}${on ? "" : " off"}` }));
    }
  }

  head(step: number): Child[] {
    if (this.loop === null) return ["No listing was recorded."];
    const name = code(readableName(this.kernel));
    const { lines } = this.loop.right;
    const role = this.roles[step - 1];
    const fma = lines.filter((line) => line.role?.key === "fma").length;
    const loads = lines.filter((line) => line.role?.label.startsWith("load") || MEMORY_READ.test(line.text)).length;
    if (role !== undefined) {
      const number = this.linesOf(role).length;
      return [
        bold(`${number} of ${lines.length} lines`),
        ` of the inner loop of `,
        name,
        `${number === 1 ? " is" : " are"} for `,
        bold(role.kind === "loop" ? "the loop itself" : role.label),
        ".",
      ];
    }
    const what =
      fma > 0
        ? [bold(count(fma, "multiply-add")), ` fed by ${count(loads, "load")}`]
        : [bold(count(lines.length, "instruction")), `, ${count(loads, "load")} among them`];
    return ["One step of the inner loop of ", name, ": ", ...what, "."];
  }

  caption(step: number): string {
    return step === 0 ? truncate("the inner loop", 30) : this.roles[step - 1].label;
  }

  destroy(): void {
    this.sizes.disconnect();
  }
}
