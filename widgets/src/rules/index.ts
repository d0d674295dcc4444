// The rule playground: the rules of the pipeline and the user's rules, where each would match, and the results of
// firing, inserting or disabling one. Without Python it shows recorded branches.

import { button, h, replaceChildren } from "../dom";
import { count, paragraphs } from "../format";
import type { Branch, RuleFiring } from "../model";
import type { Change, Store, View } from "../store";
import { codeBlock } from "../views/step_text";
import { makeCounterexample, makeVerdictTag } from "../views/firing_check";
import { type Command, type WhatIf, whatIfOf } from "../what_if";
import { makeProgress } from "../progress";
import { makeBranchView, firingsOf, isAboutRules, titleOf } from "./branch_result";
import type { RuleMatch, RuleRow } from "../requests";
import { listRecordedRules } from "./recorded_rules";
import { openBranchAtFiring } from "./branch_stepper";

const MOST_PLACES = 60;
const DELAY_MS = 120;
const EXAMPLE = `from tinyexplore.explore import playground
from tinyexplore.explore.playground import cvar, var

x, c = var("x"), cvar("c")

@playground.rule(x * c)
def shift(x, c):
    """x * 2**n is x << n, for whole numbers."""
    if not isinstance(c.arg, int) or c.arg < 2 or c.arg & (c.arg - 1):
        return None
    return x << (c.arg.bit_length() - 1)`;

export class RulesView implements View {
  readonly element = h("section", { class: "rules", "aria-label": "Rules" });
  private readonly whatIf: WhatIf;
  private readonly search = h("input", { type: "search", placeholder: "find a rule", "aria-label": "Find a rule" });
  private readonly list = h("div", { class: "rules-list scroll", role: "listbox", "aria-label": "Rules", tabindex: 0 });
  private readonly says = h("div", { class: "tuner-status", role: "status" });
  private readonly firingCheck = h("p", { class: "note rules-check", role: "status" });
  private readonly body = h("div", {
    class: "rules-body scroll",
    tabindex: 0,
    role: "region",
    "aria-label": "The rule and its results",
  });
  private readonly draft = h("textarea", {
    class: "rules-draft",
    spellcheck: "false",
    autocapitalize: "off",
    wrap: "off",
    rows: 12,
    "aria-label": "A rule, in Python",
  });
  private readonly writeStatus = h("span", { class: "rules-write-status", role: "status" });
  private readonly writeButton = button(
    "Write a rule",
    "In this page, in Python",
    () => this.choose(""),
    "rules-write",
  );
  private readonly stop: () => void;
  private rows: RuleRow[];
  private chosen = "";
  private branch: number | null = null;
  private places: RuleMatch[] | string | null = null;
  private pass = "simplify";
  private hasRequestedRules = false;
  private knownBranches = 0;
  private loading = false;
  private stepperError = "";
  private proves = ""; // whether Python can prove firings, as text

  constructor(private readonly store: Store) {
    this.whatIf = whatIfOf(store.index);
    this.rows = listRecordedRules(store.index.trace);
    this.stop = this.whatIf.subscribe(() => this.onProgress());
    this.search.addEventListener("input", () => this.drawList());
    this.draft.value = EXAMPLE;
    this.draft.addEventListener("keydown", (event) => this.onKey(event));
    const left = h("div", { class: "rules-left" }, this.search, this.writeButton, this.list);
    replaceChildren(
      this.element,
      this.says,
      h("div", { class: "rules-columns" }, left, h("div", { class: "rules-right" }, this.firingCheck, this.body)),
    );
    if (this.whatIf.send === null) this.chosen = this.rows[0]?.name ?? ""; // nothing to write: the most frequent rule
    this.knownBranches = this.branches.length;
    this.branch = this.branches.at(-1)?.id ?? null;
    this.draw();
    setTimeout(() => this.requestFirst());
  }

  update(change: Change): void {
    if (change.cursor) this.requestFirst();
  }

  /** Sends the first request when the panel becomes visible. */
  private requestFirst(): void {
    if (this.element.offsetParent === null) return; // another panel is open
    if (!this.hasRequestedRules) void this.requestRules();
    void this.requestChecks();
  }

  destroy(): void {
    this.stop();
  }

  private get branches(): Branch[] {
    return this.whatIf.branches.filter(isAboutRules);
  }

  /** Called when a command makes progress or ends. */
  private onProgress(): void {
    const isNew = this.branches.length > this.knownBranches;
    if (isNew) this.branch = this.branches.at(-1)!.id;
    if (this.branches.length !== this.knownBranches) void this.requestRules();
    this.knownBranches = this.branches.length;
    this.draw();
    if (isNew) this.scrollToResult();
  }

  /** Scrolls to the result of the selected command. */
  private scrollToResult(): HTMLElement | null {
    const row = this.body.querySelector<HTMLElement>(":scope > [aria-current]");
    if (row !== null) this.body.scrollTop += row.getBoundingClientRect().top - this.body.getBoundingClientRect().top;
    return row;
  }

  // *** requests to Python ***

  private onKey(event: KeyboardEvent): void {
    event.stopPropagation(); // typed letters are not shortcuts of the explorer
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) void this.write();
  }

  /** Defines the typed rule in the page's Python. */
  private async write(): Promise<void> {
    const { sendRequest } = this.store;
    if (sendRequest === null) return;
    replaceChildren(this.writeStatus, "waiting for Python …");
    this.draft.removeAttribute("aria-invalid");
    try {
      const { rules } = await sendRequest({ ask: "write", text: this.draft.value });
      replaceChildren(this.writeStatus);
      await this.requestRules();
      this.choose(rules[0], true);
    } catch (error) {
      this.draft.setAttribute("aria-invalid", "true");
      replaceChildren(
        this.writeStatus,
        h("span", { class: "tuner-error" }, error instanceof Error ? error.message : String(error)),
      );
    }
  }

  private async requestRules(): Promise<void> {
    const { sendRequest } = this.store;
    if (sendRequest === null) return;
    this.hasRequestedRules = true;
    const list = await sendRequest({ ask: "rules" }).catch(() => null);
    if (list === null) return;
    this.proves = list.proves;
    this.rows = [...list.rows].sort((a, b) => Number(b.own) - Number(a.own) || b.firings - a.firings);
    const ownRule = this.rows.find((row) => row.own);
    if (this.chosen === "" && ownRule !== undefined && !this.whatIf.inPage) this.choose(ownRule.name);
    else this.draw();
  }

  private choose(name: string, byReader = false): void {
    this.chosen = name;
    this.places = null;
    this.draw();
    if (this.row?.own) void this.requestMatches(byReader);
  }

  /** Requests the matches of the rule and highlights their nodes; with `show`, scrolls to the first. */
  private async requestMatches(show: boolean): Promise<void> {
    const { sendRequest } = this.store;
    if (sendRequest === null) return;
    const rule = this.chosen;
    this.places = "finding matches in Python …";
    this.draw();
    try {
      const matches = await sendRequest({ ask: "matches", rule });
      if (rule !== this.chosen) return;
      this.places = matches.places;
      if (show && matches.places.length > 0)
        this.store.go({ stage: matches.places[0].stage, step: matches.places[0].step, graph: "uops" });
      this.store.select(matches.places.slice(0, MOST_PLACES).map(({ node }) => node));
    } catch (error) {
      this.places = error instanceof Error ? error.message : String(error);
    }
    this.draw();
  }

  /** Requests the verdict on the firing at the current position. */
  private async requestChecks(): Promise<void> {
    const { sendRequest, cursor, index } = this.store;
    const stage = cursor.stage === null ? undefined : index.trace.stages[cursor.stage];
    const fired = stage?.steps[cursor.step - 1];
    const key = `${cursor.stage} ${cursor.step}`;
    if (stage === undefined || fired === undefined || fired.rule === null) {
      replaceChildren(this.firingCheck);
      return;
    }
    const where = `${stage.name}, step ${cursor.step}: ${index.trace.rules[fired.rule].name} fired`;
    replaceChildren(this.firingCheck, where);
    if (sendRequest === null) return;
    await new Promise((resolve) => setTimeout(resolve, DELAY_MS)); // fast stepping skips intermediate requests
    if (key !== `${cursor.stage} ${this.store.cursor.step}` || cursor !== this.store.cursor) return;
    const verdict = await sendRequest({ ask: "check", stage: stage.id, step: cursor.step }).catch(() => null);
    if (verdict !== null && cursor === this.store.cursor)
      replaceChildren(this.firingCheck, where, " ", makeVerdictTag(verdict.status), ` ${verdict.says}`);
  }

  private do(command: Command, text: string): void {
    this.whatIf.ask(command, text, null);
  }

  // *** drawing ***

  private get row(): RuleRow | undefined {
    return this.rows.find(({ name }) => name === this.chosen);
  }

  private draw(): void {
    this.drawStatus();
    this.drawList();
    this.writeButton.hidden = !this.whatIf.inPage || this.chosen === "";
    const { row } = this;
    const tried = this.branches;
    replaceChildren(
      this.body,
      row === undefined || this.whatIf.send === null ? this.makeInvitation() : null,
      ...(row === undefined ? [] : this.describeRule(row)),
      tried.length === 0 ? null : h("h5", {}, "Tried"),
      ...tried.flatMap((branch) => [
        this.makeTriedRow(branch),
        branch.id === this.branch
          ? makeBranchView(this.store, branch, (firing) => void this.stepThrough(branch, firing))
          : null,
      ]),
    );
  }

  private drawStatus(): void {
    const error = this.whatIf.error || this.stepperError;
    const loading = { text: "computing every step of this branch", done: 0, of: 0, cancel: false };
    const working = this.whatIf.working ?? (this.loading ? loading : null);
    const parts =
      working !== null
        ? makeProgress(this.whatIf, working)
        : error === ""
          ? []
          : [h("span", { class: "tuner-error" }, error)];
    replaceChildren(this.says, ...parts);
    this.says.hidden = parts.length === 0;
  }

  private drawList(): void {
    const query = this.search.value.trim().toLowerCase();
    const matches = this.rows.filter(({ name, law, passes }) =>
      `${name} ${law} ${passes.join(" ")}`.toLowerCase().includes(query),
    );
    const largest = Math.max(1, ...matches.map(({ firings }) => firings));
    replaceChildren(
      this.list,
      ...matches.map((row) =>
        h(
          "button",
          {
            type: "button",
            class: `rules-row${row.own ? " own" : ""}${row.firings === 0 ? " idle" : ""}`,
            role: "option",
            "aria-selected": String(row.name === this.chosen),
            title: row.law,
            style: `--share:${row.firings / largest}`,
            onclick: () => this.choose(row.name, true),
          },
          h("b", {}, row.name),
          h("span", { class: "faint" }, row.own ? "written here" : row.firings === 0 ? "–" : String(row.firings)),
        ),
      ),
      matches.length === 0 ? h("p", { class: "empty" }, "No rule matches.") : null,
    );
  }

  private makeInvitation(): HTMLElement {
    const live = this.whatIf.send !== null;
    if (live && this.whatIf.inPage) {
      const add = button(
        "Add this rule",
        "Adds it to the list, with the nodes that it matches (Ctrl+Enter)",
        () => void this.write(),
      );
      const says =
        "Write a rule here to add it to the list. Or choose a rule of the pipeline, and compare the kernels without that rule.";
      return h(
        "div",
        {},
        h("p", { class: "note" }, says),
        h("div", { class: "rules-actions" }, add, this.writeStatus),
        this.draft,
      );
    }
    const text = live
      ? "Write a rule in a cell to add it to the list. Or choose a rule of the pipeline, and compare the kernels without that rule."
      : "This page lists the rules that fired in this capture, and those that were tried. A notebook tries more (view.rules).";
    return h("div", {}, h("p", { class: "note" }, text), live ? codeBlock(EXAMPLE) : null);
  }

  private describeRule(row: RuleRow): (Element | null)[] {
    const live = this.whatIf.send !== null && this.whatIf.working === null;
    const { places } = this;
    const list = Array.isArray(places) ? places : [];
    const passes = [...new Set(this.rows.flatMap((row) => row.passes))];
    const select = h(
      "select",
      { "aria-label": "Pass" },
      ...passes.map((name) => h("option", { value: name, selected: name === this.pass }, name)),
    );
    select.addEventListener("change", () => (this.pass = select.value));
    const rule = row.name;
    const buttons = row.own
      ? [
          button("Insert at", "Compiles all kernels with this rule as the first of the pass", () =>
            this.do({ kind: "InsertRule", rule, stage: this.pass, position: 0 }, `${rule} in ${this.pass}`),
          ),
          select,
          button("Fire all", "Fires the rule at every match in its first pass, in each kernel", () =>
            this.fireAll(list),
          ),
        ]
      : [
          button("Disable", "Compiles all kernels without this rule", () =>
            this.do({ kind: "DisableRule", rule }, `without ${rule}`),
          ),
          button(
            "Find matches",
            "Lists every node that the rule matches (needs Python)",
            () => void this.requestMatches(true),
          ),
        ];
    for (const element of buttons)
      if (element instanceof HTMLButtonElement)
        element.disabled = !live || (element.textContent === "Fire all" && list.length === 0);
    const wrongCount = list.filter(({ verdict }) => verdict.status === "differs").length;
    return [
      h(
        "h4",
        {},
        row.name,
        h(
          "span",
          { class: "faint" },
          row.own ? " written here" : ` ${row.passes.join(", ")} · ${count(row.firings, "firing")}`,
        ),
      ),
      h("div", { class: "law" }, row.law),
      ...paragraphs(row.doc).map(({ text, formula }) =>
        formula ? h("div", { class: "law" }, text) : h("p", { class: "note" }, text),
      ),
      this.whatIf.send === null
        ? h("p", { class: "note faint" }, "Firing and inserting need Python: use view.rules in a notebook.")
        : h("div", { class: "rules-actions" }, ...buttons),
      typeof places === "string" ? h("p", { class: "note", role: "status" }, places) : null,
      Array.isArray(places)
        ? h(
            "h5",
            {},
            `Would fire at ${count(list.length, "node")}`,
            wrongCount > 0 ? h("span", { class: "rules-wrong" }, ` · changes the value at ${wrongCount}`) : null,
          )
        : null,
      Array.isArray(places) && this.proves !== ""
        ? h("p", { class: "note faint" }, `Check of each firing: ${this.proves}.`)
        : null,
      ...list.slice(0, MOST_PLACES).map((match) => this.place(match, live && row.own)),
      list.length > MOST_PLACES
        ? h(
            "p",
            { class: "note faint" },
            `${list.length - MOST_PLACES} more; view.rules.matches(${JSON.stringify(rule)}) has all`,
          )
        : null,
    ];
  }

  private place(match: RuleMatch, live: boolean): HTMLElement {
    const { kernel, name, stage, step, node, before, after, verdict } = match;
    const go = (): void => {
      this.store.go({ stage, step, graph: "uops" });
      this.store.select([node]);
    };
    const fire = button(
      "fire",
      "Fires the rule here, then runs the rest of the pipeline",
      () =>
        this.do(
          { kind: "FireRule", rule: match.rule, kernel, stage: name, step, node: match.digest },
          `firing ${match.rule}`,
        ),
      "quiet",
    );
    fire.disabled = !live;
    return h(
      "div",
      { class: "rules-place" },
      h(
        "button",
        { type: "button", class: "event", onclick: go, title: "Show the node in the graph" },
        h("span", { class: "faint" }, `kernel ${kernel}, ${name}, step ${step}`),
        h("span", { class: "removed" }, before),
        h("span", { class: "faint" }, "→"),
        h("span", { class: "added" }, after),
      ),
      makeVerdictTag(verdict.status),
      live ? fire : null,
      verdict.counterexample === null
        ? null
        : makeCounterexample(
            verdict.counterexample.inputs,
            verdict.counterexample.before,
            verdict.counterexample.after,
          ),
    );
  }

  private async stepThrough(branch: Branch, firing: RuleFiring | null): Promise<void> {
    this.stepperError = "";
    this.loading = true;
    this.drawStatus();
    try {
      await openBranchAtFiring(this.store, this.element.closest<HTMLElement>(".tinyexplore")!, branch, firing);
    } catch (error) {
      this.stepperError = error instanceof Error ? error.message : String(error);
    }
    this.loading = false;
    this.drawStatus();
  }

  private fireAll([first]: RuleMatch[]): void {
    this.do(
      { kind: "FireRule", rule: first.rule, kernel: first.kernel, stage: first.name, step: first.step, node: "" },
      `firing ${first.rule}`,
    );
  }

  private makeTriedRow(branch: Branch): HTMLElement {
    const firings = firingsOf(branch);
    const wrongCount = firings.filter(({ verdict }) => verdict === "differs").length;
    const choose = (): void => {
      this.branch = branch.id;
      this.draw();
      this.scrollToResult()?.focus({ preventScroll: true });
    };
    const worst =
      branch.status === "failed"
        ? "failed"
        : wrongCount > 0
          ? "differs"
          : firings.length === 0
            ? ""
            : firings.every(({ verdict }) => verdict === "proved")
              ? "proved"
              : firings.some(({ verdict }) => verdict === "not checked")
                ? "not checked"
                : "agrees";
    return h(
      "button",
      { type: "button", class: "event", "aria-current": branch.id === this.branch ? "step" : null, onclick: choose },
      h("b", {}, titleOf(branch)),
      worst === "" ? null : makeVerdictTag(worst),
      h(
        "span",
        { class: "faint" },
        `${count(firings.length, "firing")}${wrongCount > 0 ? `, ${wrongCount} wrong` : ""} · ${count(branch.kernels.length, "kernel")} changed`,
      ),
    );
  }
}
