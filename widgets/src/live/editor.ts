// A text field with colors and line numbers: a plain textarea over a copy of its text, so that all browser functions
// for text fields work. Tab indents; Escape, then Tab, leaves the field.

import { h, replaceChildren } from "../dom";
import { tokenizePython } from "../tokenizer";

const INDENT = "    ";

export class ProgramEditor {
  readonly element: HTMLElement;
  onChange: (() => void) | null = null;
  onRun: (() => void) | null = null;
  private readonly field = h("textarea", {
    class: "pg-text",
    spellcheck: "false",
    autocapitalize: "off",
    autocomplete: "off",
    wrap: "off",
    "aria-label": "Program, in Python",
    "aria-describedby": "pg-keys",
  });
  private readonly highlighted = h("pre", { class: "pg-colors", "aria-hidden": "true" });
  private readonly gutter = h("div", { class: "pg-gutter", "aria-hidden": "true" });
  private marked: number | null = null;
  private leaves = false;

  constructor() {
    this.element = h(
      "div",
      { class: "pg-editor" },
      this.gutter,
      h("div", { class: "pg-sheet" }, this.highlighted, this.field),
    );
    this.field.addEventListener("input", () => {
      this.marked = null;
      this.draw();
      this.onChange?.();
    });
    this.field.addEventListener("keydown", (event) => this.onKey(event));
    this.draw();
  }

  get text(): string {
    return this.field.value;
  }

  set text(text: string) {
    this.field.value = text;
    this.marked = null;
    this.draw();
  }

  focus(): void {
    this.field.focus();
  }

  /** Marks the line of a program's error; null marks none. */
  mark(line: number | null): void {
    this.marked = line;
    this.draw();
  }

  private draw(): void {
    const lines = tokenizePython(this.text);
    const rows = lines.map((tokens, i) => {
      const parts = tokens.map(([kind, text]) => (kind === "" ? text : h("span", { class: `t-${kind}` }, text)));
      return h(
        "div",
        { class: i + 1 === this.marked ? "pg-line wrong" : "pg-line" },
        ...(parts.length === 0 ? ["\u200b"] : parts),
      );
    });
    replaceChildren(this.highlighted, ...rows);
    replaceChildren(
      this.gutter,
      ...lines.map((_, i) => h("div", { class: i + 1 === this.marked ? "wrong" : "" }, String(i + 1))),
    );
    this.field.rows = lines.length;
    if (this.marked === null) this.field.removeAttribute("aria-invalid");
    else this.field.setAttribute("aria-invalid", "true");
  }

  private onKey(event: KeyboardEvent): void {
    const { key, shiftKey } = event;
    const leaves = this.leaves;
    this.leaves = key === "Escape";
    if (key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      this.onRun?.();
    } else if (key === "Enter" && !shiftKey) {
      const [before] = this.text.slice(0, this.field.selectionStart).split("\n").slice(-1);
      const indent = /^ */.exec(before)![0] + (/:\s*$/.test(before) ? INDENT : "");
      event.preventDefault();
      this.insert(`\n${indent}`);
    } else if (key === "Tab" && !leaves && !event.altKey && !event.ctrlKey) {
      event.preventDefault();
      if (shiftKey) this.outdent();
      else this.insert(INDENT);
    }
  }

  /** Inserts text like typed text, so that undo works. */
  private insert(text: string): void {
    if (!document.execCommand("insertText", false, text)) {
      this.field.setRangeText(text, this.field.selectionStart, this.field.selectionEnd, "end");
      this.field.dispatchEvent(new Event("input"));
    }
  }

  private outdent(): void {
    const { selectionStart } = this.field;
    const start = this.text.lastIndexOf("\n", selectionStart - 1) + 1;
    const [spaces] = /^ {0,4}/.exec(this.text.slice(start))!;
    if (spaces === "") return;
    this.field.setSelectionRange(start, start + spaces.length);
    this.insert("");
    if (this.text.slice(start, start + spaces.length) === spaces)
      this.field.setRangeText("", start, start + spaces.length, "end");
    const caret = Math.max(start, selectionStart - spaces.length);
    this.field.setSelectionRange(caret, caret);
    this.draw();
  }
}
