// The listings of a branch, compared line by line with those of another one.

import { button, h, replaceChildren, tab, tabList } from "../dom";
import { count, languageName } from "../format";
import { type LineChange, compareLines } from "../line_changes";
import type { Branch } from "../model";
import { tokenize } from "../tokenizer";
import { type WhatIf, variantOf } from "../what_if";
import { StageEditor } from "./editor";
import { nameOf } from "./branch_tree";

const CONTEXT = 3; // lines around a difference
const LISTING_ORDER = ["c", "asm", "llvm-opt", "llvm", "uops", "python", "opts"];
const EDITABLE = ["c", "llvm", "uops", "opts"];
const NATIVE = ["c", "llvm"]; // languages that a compiler outside of a browser compiles
const MOST_LINES = 3000; // lines of both listings; longer ones are not compared

export class TunerListing {
  readonly element = h("section", { class: "tuner-code", "aria-label": "Listings" });
  private language = "";
  private whole = false;
  private editing = false;
  private readonly editor: StageEditor;

  constructor(private readonly whatIf: WhatIf) {
    this.editor = new StageEditor(whatIf);
  }

  draw(branch: Branch, base: Branch | null): void {
    const listings = listingsOf(branch);
    const languages = LISTING_ORDER.filter((name) => listings.some(({ language }) => language === name));
    if (!languages.includes(this.language)) this.language = languages[0] ?? "";
    const redraw = (): void => this.draw(branch, base);
    const tabs = languages.map((tabLanguage) =>
      tab(tabLanguage, languageName(tabLanguage), tabLanguage === this.language, () => {
        this.language = tabLanguage;
        redraw();
      }),
    );
    const lines = listings.find(({ language }) => language === this.language)?.lines ?? [];
    const edit = button(
      "edit",
      this.whatIf.send === null
        ? "A page shows recorded texts. A notebook compiles changed texts"
        : "Change this text. The engine compiles, runs, compares and times the changed text",
      () => {
        this.editing = !this.editing;
        redraw();
        if (this.editing) this.editor.focus();
      },
      "quiet toggle",
    );
    edit.hidden = !EDITABLE.includes(this.language);
    const isNative = this.whatIf.inPage && NATIVE.includes(this.language);
    if (isNative)
      edit.title = `A page has no compiler for ${languageName(this.language)}. A notebook has one. Here you can edit the opts and the UOps`;
    edit.disabled = this.whatIf.send === null || isNative;
    const isEdited = this.editing && !edit.hidden && !edit.disabled;
    edit.setAttribute("aria-pressed", String(isEdited));
    const other = listingsOf(base).find(({ language }) => language === this.language)?.lines;
    const comparable = other !== undefined && other.length + lines.length <= MOST_LINES;
    const changes = comparable
      ? compareLines(other, lines)
      : lines.map((text, i): LineChange => ({ kind: "same", text, a: null, b: i + 1 }));
    const fresh = changes.filter(({ kind }) => kind === "new").length;
    const removed = changes.filter(({ kind }) => kind === "removed").length;
    const toggle = button(
      "all lines",
      "Show the whole listing, or only the changes",
      () => {
        this.whole = !this.whole;
        redraw();
      },
      "quiet toggle",
    );
    toggle.setAttribute("aria-pressed", String(this.whole || !comparable));
    toggle.disabled = !comparable;
    const isCompared = comparable && base !== null;
    const says = isCompared ? `+${fresh} −${removed}` : count(lines.length, "line");
    const title = isCompared ? `${says}: lines added and removed against ${nameOf(base)}` : says;
    const bar = h(
      "div",
      { class: "bar" },
      tabList("Listings", ...tabs),
      h("span", { class: "space" }),
      h("span", { class: "faint tuner-says", title }, says),
      toggle,
      edit,
    );
    if (isEdited) {
      toggle.hidden = true;
      this.element.querySelector(".bar")?.remove();
      if (this.editor.element.parentElement !== this.element) replaceChildren(this.element, this.editor.element);
      this.element.prepend(bar);
      this.editor.show(branch, this.language, `${lines.join("\n")}\n`);
      return;
    }
    const visibleChanges = this.whole || !comparable ? changes : selectChanges(changes);
    const body = h("div", {
      class: "listing scroll",
      tabindex: 0,
      role: "group",
      "aria-label": languageName(this.language),
    });
    if (comparable && fresh + removed === 0 && !this.whole)
      body.append(h("p", { class: "note" }, `The ${languageName(this.language)} is the same.`));
    body.append(
      ...visibleChanges.map((change) =>
        change === null
          ? h("div", { class: "tuner-gap", "aria-hidden": "true" }, "⋯")
          : makeLine(change, this.language),
      ),
    );
    const scrolled = this.element.querySelector(".listing")?.scrollTop ?? 0;
    replaceChildren(this.element, bar, body);
    body.scrollTop = scrolled;
  }
}

/** Returns the listings of a branch, including its opts. */
function listingsOf(branch: Branch | null): readonly { language: string; lines: readonly string[] }[] {
  const variant = variantOf(branch);
  return variant === null ? [] : [...variant.listings, { language: "opts", lines: variant.opts }];
}

/** Returns the differences with the lines around them; null for omitted lines. */
export function selectChanges(changes: LineChange[]): (LineChange | null)[] {
  const keep = changes.map(() => false);
  changes.forEach(({ kind }, i) => {
    if (kind === "same") return;
    for (let k = Math.max(0, i - CONTEXT); k <= Math.min(changes.length - 1, i + CONTEXT); k += 1) keep[k] = true;
  });
  const rows: (LineChange | null)[] = [];
  changes.forEach((change, i) => {
    if (keep[i]) rows.push(change);
    else if (rows.at(-1) !== null && keep.includes(true)) rows.push(null);
  });
  return rows;
}

const SIGNS = { same: " ", removed: "−", new: "+" };

export function makeLine({ kind, text, a, b }: LineChange, language: string): HTMLElement {
  const tokens = tokenize(language, text).map(([token, part]) =>
    token === "" ? h("span", {}, part) : h("span", { class: `t-${token}` }, part),
  );
  return h(
    "div",
    { class: `tuner-code-line ${kind}` },
    h("span", { class: "tuner-number" }, String(b ?? a ?? "")),
    h("span", { class: "tuner-sign" }, SIGNS[kind]),
    h("code", {}, ...tokens),
  );
}
