// A stage of a kernel as editable text, with colors, line numbers and diagnostics at their lines.

import { button, h, oncePerFrame, replaceChildren } from "../dom";
import { languageName } from "../format";
import { baseText, ratioText, timeText } from "./time_comparison";
import type { Branch, Diagnostic } from "../model";
import { tokenize } from "../tokenizer";
import { type WhatIf, variantOf } from "../what_if";
import { makeProgress } from "../progress";

const MOST_COLORED = 3000; // lines

export class StageEditor {
  readonly element: HTMLElement;
  private readonly area = h("textarea", {
    class: "edit-area",
    spellcheck: "false",
    autocomplete: "off",
    autocapitalize: "off",
    wrap: "off",
  });
  private readonly paint = h("pre", { class: "edit-paint", "aria-hidden": "true" });
  private readonly gutter = h("div", { class: "edit-gutter", "aria-hidden": "true" });
  private readonly says = h("div", {
    class: "edit-says",
    role: "status",
    id: `edit-says-${Math.random().toString(36).slice(2)}`,
  });
  private readonly run: HTMLButtonElement;
  private readonly reset: HTMLButtonElement;
  private language = "";
  private branch: Branch | null = null;
  private original = "";
  private requestedText = "";
  private last: Branch | undefined;
  private marked: readonly Diagnostic[] = [];
  private readonly redraw = oncePerFrame(() => this.draw());

  constructor(private readonly whatIf: WhatIf) {
    this.run = button("Run", "Compiles, runs and compares this text (Ctrl+Enter)", () => this.ask(), "edit-run");
    this.reset = button("Reset", "Restore the text of the open branch", () => this.load(this.original), "quiet");
    this.area.addEventListener("input", this.redraw);
    this.area.addEventListener("keydown", (event) => this.onKey(event));
    this.area.setAttribute("aria-describedby", this.says.id);
    const hint = h("span", { class: "faint edit-hint" }, "Ctrl+Enter runs · Esc, then Tab, leaves");
    const text = h("div", { class: "edit-text" }, this.paint, this.area);
    this.element = h(
      "div",
      { class: "edit" },
      h("div", { class: "bar edit-bar" }, this.run, this.reset, h("span", { class: "space" }), hint),
      h("div", { class: "edit-scroll scroll" }, this.gutter, text),
      this.says,
    );
  }

  /** Shows `text`, the `language` of `branch`; unsaved edits are kept. */
  show(branch: Branch, language: string, text: string): void {
    const other = language !== this.language || branch.id !== this.branch?.id;
    const isDirty = language === this.language && this.area.value !== this.original;
    this.branch = branch;
    this.language = language;
    this.original = text;
    this.area.setAttribute("aria-label", `${languageName(language)} of the kernel, to be changed`);
    if (other && !isDirty) this.load(text);
    this.tell();
  }

  focus(): void {
    this.area.focus();
    this.area.setSelectionRange(0, 0);
  }

  private load(text: string): void {
    this.area.value = text;
    this.draw();
  }

  private ask(): void {
    if (this.branch?.kernel == null || this.whatIf.send === null || this.whatIf.working !== null) return;
    this.requestedText = this.area.value;
    this.whatIf.ask(
      { kind: "Edit", kernel: this.branch.kernel, stage: this.language, text: this.requestedText },
      "compiling and comparing the edit",
    );
  }

  private onKey(event: KeyboardEvent): void {
    event.stopPropagation(); // typed letters are not shortcuts of the explorer
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.ask();
    else if (event.key === "Escape") this.run.focus();
    else if (event.key === "Tab" && !event.shiftKey) {
      const { selectionStart, selectionEnd } = this.area;
      this.area.setRangeText("  ", selectionStart, selectionEnd, "end");
      this.redraw();
    } else return;
    event.preventDefault();
  }

  /** Shows the result of the text: of the open branch, or of the last edit if it failed. */
  private tell(): void {
    const { whatIf, branch } = this;
    const mine =
      branch?.kernel == null
        ? []
        : whatIf
            .of(branch.kernel)
            .filter(
              ({ command }) =>
                command.kind === "Edit" &&
                command.arguments.some(([name, value]) => name === "text" && value === this.requestedText),
            );
    const last = this.requestedText === "" ? undefined : mine.at(-1);
    const outcome = last?.status === "failed" ? last : (branch?.edited ?? null) === null ? null : branch;
    this.marked = outcome?.edited?.diagnostics ?? [];
    const parts: Element[] = [];
    if (whatIf.working !== null) parts.push(h("p", { class: "bar" }, ...makeProgress(whatIf, whatIf.working)));
    else if (outcome != null) {
      const good = outcome.status === "done" && outcome.edited?.verdict !== "differs";
      parts.push(
        h(
          "p",
          { class: good ? "edit-good" : "edit-bad" },
          `${good ? "✓" : "✕"} ${this.marked.length > 0 ? "Not compiled" : outcome.reason}`,
        ),
      );
      parts.push(...writeTimes(outcome));
      for (const gap of outcome.edited?.unprotected ?? [])
        parts.push(h("p", { class: "faint" }, `Not guarded here: ${gap}`));
    }
    for (const diagnostic of this.marked)
      parts.push(
        button(
          diagnostic.line > 0
            ? `line ${diagnostic.line}${diagnostic.column > 0 ? `:${diagnostic.column}` : ""} · ${diagnostic.text}`
            : diagnostic.text,
          "Go there",
          () => this.goTo(diagnostic),
          `quiet edit-message ${diagnostic.level}`,
        ),
      );
    replaceChildren(this.says, ...parts);
    this.says.hidden = parts.length === 0;
    this.area.setAttribute("aria-invalid", String(this.marked.length > 0));
    this.draw();
    const first = this.marked[0]?.line ?? 0;
    if (last !== this.last && first > 0) this.gutter.children[first - 1]?.scrollIntoView({ block: "nearest" });
    this.last = last;
  }

  private goTo({ line, column }: Diagnostic): void {
    if (line === 0) return;
    const lines = this.area.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    const offset = start + Math.max(0, column - 1);
    this.area.focus();
    this.area.setSelectionRange(
      column > 0 ? offset : start,
      column > 0 ? offset : start + (lines[line - 1]?.length ?? 0),
    );
    this.gutter.children[line - 1]?.scrollIntoView({ block: "nearest" });
  }

  private draw(): void {
    const lines = this.area.value.split("\n");
    const diagnosticOf = new Map(
      this.area.value === this.requestedText ? this.marked.map((diagnostic) => [diagnostic.line, diagnostic]) : [],
    );
    const isColored = lines.length <= MOST_COLORED;
    replaceChildren(
      this.gutter,
      ...lines.map((_, i) =>
        h("div", { class: diagnosticOf.has(i + 1) ? "bad" : "", title: diagnosticOf.get(i + 1)?.text }, String(i + 1)),
      ),
    );
    replaceChildren(
      this.paint,
      ...lines.map((text, i) =>
        h(
          "div",
          { class: diagnosticOf.has(i + 1) ? "bad" : "" },
          ...(isColored ? tokenize(this.language, text) : [["", text]]).map(([kind, part]) =>
            h("span", { class: kind === "" ? "" : `t-${kind}` }, part),
          ),
          "\u200b",
        ),
      ),
    );
    this.element.style.setProperty("--lines", String(lines.length));
    this.element.style.setProperty(
      "--columns",
      String(lines.reduce((most, { length }) => Math.max(most, length), 0) + 2),
    );
    this.run.disabled = this.whatIf.working !== null || this.whatIf.send === null;
    this.reset.disabled = this.area.value === this.original;
  }
}

/** Returns the time of an edit, and of the text before it, which was measured alternately. */
function writeTimes(branch: Branch): Element[] {
  const variant = variantOf(branch);
  if (variant === null || branch.edited === null || timeText(variant) === "" || baseText(variant) === "") return [];
  const comparison = ratioText(variant, "before the edit");
  return [h("p", {}, `before ${baseText(variant)} → `, h("b", {}, timeText(variant)), `: ${comparison}`)];
}
