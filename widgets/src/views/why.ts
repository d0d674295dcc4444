// Why and why not: the rules that could fire on the selected node, those that did, and what prevented the others. The
// trace has the firings; the rest is requested from Python, if available.

import type { SendRequest, Mismatch, ReturnSite, RuleAttempt, WhyNot } from "../request_channel";
import { button, h, replaceChildren } from "../dom";
import { makeComparisons, edgeDecisionOf } from "../fusion_decisions";
import { count, paragraphs, truncate } from "../format";
import type { Change, Store, View } from "../store";
import { nodeText } from "../text_tree";
import { makeChoiceRows } from "./heuristic_decisions";
import { findNewestNode, findResult } from "./empty_selection";
import { drawPattern } from "./pattern_picture";
import { codeBlock } from "./step_text";

const READING =
  "A rule names the parts of its pattern: x, y, c. A row says which part does not match: “expected” is the rule’s part, “found” is the node there. Sources are the inputs of a node, counted from 0. Open a row for the pattern beside the node.";
const FEW = 12; // mismatched rules that are initially visible
// the pattern matches, but the rule's function returns None
const ITS_OWN = new Set(["function", "nothing new", "error", "context"]);

export class WhyView implements View {
  readonly element = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Decisions" });
  private readonly body = h("div", { class: "why-body" });
  private requestKey = "";
  private showsAll = false;

  constructor(private readonly store: Store) {
    this.element.append(this.body);
    if (store.index.trace.runs.length > 0) this.element.append(makeSlowNote(store));
    this.draw();
  }

  update(change: Change): void {
    if (change.selection || change.cursor) this.draw();
  }

  private draw(): void {
    const { index, selected, cursor, sendRequest } = this.store;
    if (cursor.panel !== "why") return;
    const [id] = selected;
    const stage = cursor.stage === null ? undefined : index.trace.stages[cursor.stage];
    const key = JSON.stringify([...selected, stage?.id, cursor.step]);
    if (key === this.requestKey) return;
    this.requestKey = key;
    this.showsAll = false;
    if (stage !== undefined && stage.choices.length > 0 && (id === undefined || index.node(id).kind === "uop")) {
      const kernel = index.trace.kernels[stage.kernel!];
      const says = `has ${kernel.opts.join(", ") || "no opts"}: the decisions of the default schedule, in order.`;
      replaceChildren(this.body, this.makeHead(kernel.name, says), ...makeChoiceRows(stage));
      return;
    }
    if (id === undefined) {
      replaceChildren(this.body, this.makeQuestions());
      return;
    }
    const node = index.node(id);
    if (node.kind === "lazybuffer") {
      this.showEdges(id);
      const [a, b] = [...selected];
      if (sendRequest !== null && selected.size === 2 && index.node(b).kind === "lazybuffer")
        void this.requestKernels(sendRequest, a, b, key);
      return;
    }
    if (stage === undefined) {
      this.showNote("Rules rewrite UOps. Choose a pass and select one of its nodes.");
      return;
    }
    const about = { stage: stage.id, name: stage.name, step: cursor.step, node: id, what: nodeText(node), note: "" };
    const recorded = { ...about, fired: this.findFirings(stage.id, id), could: [], stopped: [] };
    if (sendRequest === null) this.show(recorded, this.makeOffline(recorded));
    else void this.request(sendRequest, recorded, key);
  }

  /** What the panel can answer here, each question with its example. */
  private makeQuestions(): HTMLElement {
    const { store } = this;
    const { trace } = store.index;
    const result = findResult(store);
    const node = findNewestNode(store);
    const kernelNumber = store.cursor.kernel ?? 0;
    const owner = trace.kernels[kernelNumber]?.same_as ?? kernelNumber;
    const opts = trace.stages.find(({ kernel, choices }) => kernel === owner && choices.length > 0);
    const firing = trace.stages.findLast(({ steps }) => steps.some(({ after }) => after === node));
    const showOpts = (): void => store.go({ stage: opts!.id, step: 0, graph: "uops", place: "passes" });
    const showRules = (): void => {
      const step = firing!.steps.findLastIndex(({ after }) => after === node) + 1;
      store.go({ stage: firing!.id, step, graph: "uops", place: "passes" });
      store.select([node!]);
    };
    const isStored = result !== undefined && store.index.decisionOf.get(result)?.decision === "realize";
    const name = isStored ? store.index.node(result).name || truncate(nodeText(store.index.node(result)), 40) : "";
    return h(
      "div",
      { class: "empty" },
      "Why did the compiler choose this? Choose a question, or select a node and press Y.",
      h(
        "div",
        { class: "questions" },
        result === undefined
          ? null
          : button(
              isStored ? `Why is ${name} stored in memory?` : "Show an example",
              "Selects a result: why it is cut or fused",
              () => store.select([result]),
            ),
        opts === undefined
          ? null
          : button(`Why does kernel ${owner} have these opts?`, "Shows each opt with its reason", showOpts),
        node === undefined || firing === undefined
          ? null
          : button("Which rules fired on a node, and why the others did not?", "Selects a node of a pass", showRules),
      ),
    );
  }

  /** Shows the scheduler's decisions on a LazyBuffer and its edges. */
  private showEdges(id: number): void {
    const { index } = this.store;
    const node = index.node(id);
    const decision = index.decisionOf.get(id);
    const users = index.trace.nodes.filter(({ kind, src }) => kind === "lazybuffer" && src.includes(id));
    const row = (src: number, dst: number): Element => {
      const edgeDecision = edgeDecisionOf(index, src, dst);
      const decided = index.decisionOf.get(src);
      const why = decided === undefined ? "" : `${decided.decision}: ${decided.reason}`;
      const other = truncate(nodeText(index.node(src === id ? dst : src)), 44);
      const choose = (): void => this.store.select([src, dst]);
      return h(
        "button",
        { type: "button", class: "event", onclick: choose },
        edgeDecision === null
          ? null
          : h("span", { class: `edge-decision-tag ${edgeDecision.mark}` }, edgeDecision.mark),
        h("b", {}, other),
        h("span", { class: "faint" }, why),
      );
    };
    const list = (title: string, rows: Element[]): Element[] =>
      rows.length === 0 ? [] : [h("h5", {}, title), ...rows];
    replaceChildren(
      this.body,
      this.makeHead(
        nodeText(node),
        decision === undefined
          ? "The scheduler made no decision about it."
          : `${decision.decision}: ${decision.reason}.`,
      ),
      decision === undefined ? null : makeComparisons(decision),
      ...list(
        "Reads",
        [...new Set(node.src)].map((src) => row(src, id)),
      ),
      ...list(
        "Read by",
        users.map((user) => row(id, user.id)),
      ),
    );
  }

  private async requestKernels(ask: SendRequest, a: number, b: number, key: string): Promise<void> {
    const response = await ask({ ask: "why kernels", a, b }).catch(() => null);
    if (response !== null && key === this.requestKey)
      this.body.prepend(h("p", { class: "note", role: "status" }, `${response.text}.`));
  }

  /** Returns the firings of a pass that replaced or produced a node. */
  private findFirings(stage: number, node: number): WhyNot["fired"] {
    const { stages, rules } = this.store.index.trace;
    const all = stages[stage].steps.map(({ rule, before, after }, i) => ({
      step: i + 1,
      rule: rule === null ? "" : rules[rule].name,
      before,
      after,
    }));
    return all.filter(({ rule, before, after }) => rule !== "" && (before === node || after === node));
  }

  private async request(ask: SendRequest, recorded: WhyNot, key: string): Promise<void> {
    this.show(recorded, h("p", { class: "note", role: "status" }, "waiting for Python …"));
    try {
      const { node, stage, step } = recorded;
      const response = await ask({ ask: "why", node, stage, step });
      if (key === this.requestKey) this.show(response, null);
    } catch (error) {
      if (key === this.requestKey)
        this.show(
          recorded,
          h("p", { class: "note", role: "alert" }, error instanceof Error ? error.message : String(error)),
        );
    }
  }

  private makeOffline(result: WhyNot): Element {
    const { stage, step, node } = result;
    const call = `Explorer(Trace.load("trace.json.gz")).why_not(${node}, stage=${stage}, step=${step})`;
    return h(
      "p",
      { class: "note" },
      "Rules are Python functions, which this page cannot run. In a notebook, this panel lists the rules that could fire, and why the others did not. For a saved trace, call ",
      h("code", {}, call),
      ` (node ${node} in “${result.name}”, pass ${stage} of the trace).`,
    );
  }

  private showNote(text: string): void {
    replaceChildren(this.body, h("p", { class: "empty" }, text));
  }

  private makeHead(what: string, text: string): Element {
    return h("p", { class: "note" }, h("b", {}, truncate(what, 90)), ` ${text}`);
  }

  private show(result: WhyNot, status: Element | null): void {
    const { fired, could, stopped } = result;
    const counts =
      status === null && could.length + stopped.length > 0
        ? `: ${count(could.length, "rule")} could fire, ${stopped.length} cannot`
        : "";
    const ownMismatches = stopped.filter(({ mismatch }) => ITS_OWN.has(mismatch!.kind));
    const others = stopped.filter((attempt) => !ownMismatches.includes(attempt));
    const visibleAttempts = this.showsAll ? others : others.slice(0, Math.max(0, FEW - ownMismatches.length));
    const more = button(
      `all ${others.length} …`,
      "Show all rules that cannot fire",
      () => {
        this.showsAll = true;
        this.show(result, status);
      },
      "quiet",
    );
    replaceChildren(
      this.body,
      this.makeHead(result.what, `in ${result.name} after step ${result.step}${counts}.`),
      result.note === "" ? null : h("p", { class: "note faint" }, result.note),
      stopped.length === 0 ? null : h("p", { class: "note faint" }, READING),
      ...this.group("Could fire now", "", could),
      ...(fired.length === 0 ? [] : [h("h5", {}, "Fired"), ...fired.map((firing) => this.makeFiring(result, firing))]),
      ...this.group(
        "Rejected by its function",
        "the pattern matches, but the rule's function returns None",
        ownMismatches,
      ),
      ...this.group("Pattern does not match", "the nearest miss first", visibleAttempts),
      visibleAttempts.length < others.length ? more : null,
      status,
    );
  }

  private group(title: string, text: string, rules: RuleAttempt[]): Element[] {
    if (rules.length === 0) return [];
    return [
      h("h5", {}, title, h("span", { class: "faint" }, text === "" ? "" : ` · ${text}`)),
      ...rules.map((attempt) => this.makeAttempt(attempt)),
    ];
  }

  private makeFiring({ stage }: WhyNot, { step, rule, before, after }: WhyNot["fired"][number]): Element {
    const { index, cursor } = this.store;
    const text = (node: number): string => truncate(nodeText(index.node(node)), 60);
    return h(
      "button",
      {
        type: "button",
        class: "event",
        "aria-current": step === cursor.step ? "step" : null,
        onclick: () => this.store.go({ stage, step }),
      },
      h("span", { class: "faint" }, `step ${step}`),
      h("b", {}, rule),
      h("span", { class: "removed" }, text(before)),
      h("span", { class: "faint" }, "→"),
      h("span", { class: "added" }, text(after)),
    );
  }

  private makeAttempt(attempt: RuleAttempt): Element {
    const { mismatch, at } = attempt;
    const bindings =
      at === null || this.store.selected.has(at)
        ? null
        : button("show it", "Select the node at which the match stopped", () => this.store.select([at]), "quiet");
    const picture = h("div");
    const draw = (event: Event): void => {
      if (!(event.target as HTMLDetailsElement).open || picture.childElementCount > 0 || attempt.pattern.length === 0)
        return;
      picture.append(drawPattern(attempt.pattern, (node) => this.store.select([node])));
    };
    return h(
      "details",
      { class: `attempt ${attempt.verdict}`, ontoggle: draw },
      h(
        "summary",
        {},
        h("b", {}, attempt.rule),
        ...(mismatch === null ? describeFiring(attempt) : describeMismatch(attempt, mismatch)),
      ),
      h(
        "div",
        { class: "more" },
        picture,
        ...(mismatch?.places ?? []).map(place),
        ...makeValues("Names in the rule’s pattern, and the nodes that they match here:", attempt.bound),
        h("p", {}, "The rule:"),
        h("div", { class: "law" }, attempt.law),
        ...paragraphs(attempt.doc).map(({ text, formula }) =>
          formula ? h("div", { class: "law" }, text) : h("p", {}, text),
        ),
        bindings,
        h("p", { class: "place" }, `The rule is defined in ${attempt.file}:${attempt.line}`),
        attempt.text === "" ? null : codeBlock(attempt.text),
      ),
    );
  }
}

function describeFiring({ first, after }: RuleAttempt): Element[] {
  const tag = h("span", { class: "tag d-fuse" }, first ? "fires" : "would fire, but an earlier rule matches first");
  return [tag, h("span", { class: "faint" }, "→"), h("span", { class: "added" }, after)];
}

/** Returns the two values side by side, and their position. */
function describeMismatch(
  { passed, parts }: RuleAttempt,
  { kind, path, expected, actual, places }: Mismatch,
): Element[] {
  if (ITS_OWN.has(kind)) {
    const line = places.length === 0 ? actual : `${places[0].because} ${places[0].text}`.trim();
    return [h("code", { class: "said" }, line)];
  }
  const where =
    path.length === 0
      ? "the node"
      : path
          .map((place) => `source ${place}`)
          .reverse()
          .join(" of ");
  return [
    h("span", { class: "expected" }, h("span", { class: "faint" }, "expected "), expected),
    h("span", { class: "found" }, h("span", { class: "faint" }, "found "), actual),
    h(
      "span",
      { class: "faint" },
      `${where} · ${passed} of ${count(parts, "part")} ${passed === 1 ? "matches" : "match"}`,
    ),
  ];
}

/** Returns a line that returned None, with the values of its names. */
function place({ function: name, file, line, text, because, values: of }: ReturnSite): Element {
  // the rule's function is Python: the line that declined, and its variables
  const code = [because, text].filter((part) => part !== "").join("\n    ");
  return h(
    "div",
    { class: "came-to-none" },
    codeBlock(code),
    h("p", { class: "place" }, `The rule’s function returned None at ${name}, ${file}:${line}`),
    ...makeValues("The variables of the function, with their values:", of),
  );
}

function makeValues(title: string, pairs: [string, string][]): Element[] {
  if (pairs.length === 0) return [];
  const rows = pairs.flatMap(([name, text]) => [h("dt", {}, name), h("dd", {}, text)]);
  return [h("p", {}, title), h("dl", { class: "values", "aria-label": title }, ...rows)];
}

/** Returns a link to the verdict, which explains why the code is slow; these decisions explain its form. */
function makeSlowNote(store: Store): HTMLElement {
  const go = (): void => store.go({ panel: "timing" });
  return h(
    "p",
    { class: "note faint slow-note" },
    "Why is it slow? ",
    button("the verdict", "Opens Timing", go, "link"),
  );
}
