// The card of the selected node: its description, the scheduler's decision on it, and its origin.

import { canShow } from "../panel_availability";
import { isTensor, findLevel, regionText } from "../dialect";
import { button, h, replaceChildren } from "../dom";
import { count, shapeText, truncate } from "../format";
import { kernelTitle } from "../kernel_labels";
import { spanText } from "../source_spans";
import { type EdgeDecision, makeComparisons, findEdgeBetween, edgeDecisionText } from "../fusion_decisions";
import type { GraphSnapshot } from "../replay";
import type { Store } from "../store";
import { nodeText } from "../text_tree";
import { makeKindTag, findStoredVerdicts, verdictOn } from "../verdicts";

interface CardActions {
  graph: () => GraphSnapshot;
  isolate: () => void;
  isIsolated: () => boolean;
}

const STORAGE_KEY = "tinyexplore.docked"; // key in the browser's storage: whether the card is docked beside the graph

export class NodeCard {
  readonly element = h("aside", {
    class: "card",
    "aria-label": "Selected node",
    "aria-live": "polite",
    tabindex: 0, // because it scrolls
  });

  constructor(
    private readonly store: Store,
    private readonly actions: CardActions,
  ) {
    this.element.hidden = true;
  }

  /** Whether it is docked at the right of the graph, instead of below it while something is selected. */
  isDocked = readDocked();
  private drawnBoxes = new Map<number, number>();

  /** Places the card at the right of the canvas, or below it. */
  updatePlacement(canvas: HTMLElement): void {
    canvas.after(this.element);
    this.element.classList.toggle("is-docked", this.isDocked);
  }

  private dock(): void {
    const canvas = this.element.previousElementSibling as HTMLElement;
    this.isDocked = !this.isDocked;
    saveDocked(this.isDocked);
    this.updatePlacement(canvas);
    this.draw(this.drawnBoxes);
    this.element.querySelector<HTMLElement>(".dock")?.focus();
  }

  private dockButton(): HTMLElement {
    const [sign, says] = this.isDocked
      ? ["⤓", "Unpin the card: below the graph, while a node is selected (C focuses the card)"]
      : ["⇥", "Pin the card beside the graph (C focuses the card)"];
    return button(sign, says, () => this.dock(), "icon dock");
  }

  /** Whether one of these nodes is in the visible graph, with or without a box. */
  private isThere(nodes: Set<number>): boolean {
    return [...this.actions.graph().nodes.values()].some(({ node }) => nodes.has(node));
  }

  /** Returns the edge between two LazyBuffers, if these are the whole selection. */
  private findEdge(selected: number[]): EdgeDecision | null {
    const { index } = this.store;
    if (selected.length !== 2 || selected.some((id) => !isTensor(index.trace, index.node(id)))) return null;
    return findEdgeBetween(index, selected[0], selected[1]);
  }

  /**
   * Draws the card and keeps the keyboard focus. `boxOf`: node → box of the visible graph, to name the missing ones.
   */
  draw(boxOf: Map<number, number>): void {
    const hadFocus = this.element.contains(document.activeElement);
    this.fill(boxOf);
    if (hadFocus && !this.element.contains(document.activeElement)) this.focus();
  }

  /** Takes the keyboard focus, if it is visible. */
  focus(): void {
    if (!this.element.hidden) this.element.focus();
  }

  private fill(boxOf: Map<number, number>): void {
    const { selected, related, index, cursor } = this.store;
    this.drawnBoxes = boxOf;
    this.element.hidden = selected.size === 0 && !this.isDocked;
    if (selected.size === 0) {
      const says = h("p", { class: "faint" }, "Select a node or a line to see its details here.");
      replaceChildren(this.element, this.isDocked ? this.dockButton() : null, says);
      return;
    }
    const [id] = selected;
    const node = index.node(id);
    const shownCount = [...related].filter((other) => boxOf.has(other)).length;
    const clear = button("×", "Clear the selection (Esc)", () => this.store.select([]), "icon close");
    const close = h("span", { class: "corner" }, this.dockButton(), clear);
    const actions = h(
      "div",
      { class: "actions" },
      button(this.actions.isIsolated() ? "whole graph" : "isolate", "Only its sources and users (I)", () =>
        this.actions.isolate(),
      ),
      button(
        "origin",
        `Select the ${findLevel(index.trace, "tensors")?.plural ?? "nodes"} of its origin, and their Python (O)`,
        () => makeOriginText(this.store),
      ),
      canShow(this.store, "history")
        ? button("history", "The firings that led to this node (B)", () => this.store.go({ panel: "history" }))
        : null,
      isView(this.store, id) && canShow(this.store, "shape")
        ? button("shape", "Where its elements lie in memory, movement by movement", () =>
            this.store.go({ panel: "shape" }),
          )
        : null,
      canShow(this.store, "why")
        ? button("why", "Which rules could fire on this node, and why the others cannot (Y)", () =>
            this.store.go({ panel: "why" }),
          )
        : null,
    );
    const edgeDecision = this.findEdge([...selected]);
    if (edgeDecision !== null) {
      const [src, dst] = [edgeDecision.src, edgeDecision.dst].map((node) => truncate(nodeText(index.node(node)), 40));
      const [word, ...why] = edgeDecisionText(index, edgeDecision).split("\n");
      const numbers =
        edgeDecision.decision === undefined || why.length === 0 ? null : makeComparisons(edgeDecision.decision);
      replaceChildren(
        this.element,
        close,
        h("b", {}, src, h("span", { class: "faint" }, " → "), dst),
        h("span", { class: `edge-decision-tag ${edgeDecision.mark}` }, word),
        h("span", {}, why[0] ?? ""),
        numbers,
        actions,
      );
      return;
    }
    if (selected.size > 1) {
      const text = `${count(selected.size, "node")} selected`;
      replaceChildren(
        this.element,
        close,
        h("b", {}, text),
        h("span", { class: "faint" }, `${shownCount} highlighted in this graph`),
        actions,
      );
      return;
    }
    const decision = index.decisionOf.get(id);
    const region = regionText(index.trace, id);
    const later = index.trace.back_edges.filter(({ dst }) => dst === id).map(({ src }) => src);
    const kernel = index.kernelOf.get(id);
    const frame = index.frameOf(id, cursor.kernel);
    const named = node.op === "DEFINE_GLOBAL" ? index.argumentText(cursor.kernel, Number(node.arg)) : node.name;
    const type = [node.dtype, shapeText(node.shape)].filter(Boolean).join(" ");
    const source = frame === null ? null : index.trace.sources[frame.source];
    const expression = frame === null ? "" : spanText(index, frame);
    const line = expression || (source?.text.split("\n")[(frame?.line ?? 1) - 1]?.trim() ?? "");
    const row = (name: string, ...value: (string | Element)[]): Element =>
      h("div", { class: "fact" }, h("span", { class: "faint" }, name), h("span", {}, ...value));
    replaceChildren(
      this.element,
      close,
      h("b", {}, node.label, h("span", { class: "faint" }, ` ${type}`)),
      named === "" ? null : row("named", h("code", {}, named)),
      node.detail !== "" && node.detail !== type ? row("is", truncate(node.detail, 120)) : null,
      node.arg !== "" && !node.detail.includes(node.arg) ? row("arg", truncate(node.arg, 120)) : null,
      region === "" ? null : row("in", region),
      later.length === 0 ? null : row("and later", ...later.map((src) => truncate(nodeText(index.node(src)), 60))),
      decision
        ? row(decision.decision, decision.reason, ...(decision.compared.length > 0 ? [makeComparisons(decision)] : []))
        : null,
      kernel !== undefined ? row("kernel", kernelTitle(index.trace, kernel), ...verdictWord(this.store, kernel)) : null,
      frame && source
        ? row("from", h("code", {}, `${source.name}:${frame.line}`), " ", h("code", {}, truncate(line, 60)))
        : null,
      shownCount > 0
        ? null
        : row(
            "note",
            this.isThere(related)
              ? "not drawn in this graph: shown inside a label, or hidden"
              : "not in this graph; neither are its origins and results",
          ),
      actions,
    );
  }
}

function readDocked(): boolean {
  try {
    return localStorage.getItem(STORAGE_KEY) === "yes";
  } catch {
    return false; // a page from a file, or a notebook in a frame, may have no storage
  }
}

function saveDocked(isDocked: boolean): void {
  try {
    localStorage.setItem(STORAGE_KEY, isDocked ? "yes" : "no");
  } catch {
    // without storage, the choice is not remembered
  }
}

/** Returns the verdict on a kernel as a colored word, if known. */
function verdictWord(store: Store, kernel: number): (string | Element)[] {
  const verdict = verdictOn(findStoredVerdicts(store), kernel);
  return verdict === undefined ? [] : [" ", makeKindTag(verdict)];
}

/** Whether a node is a view of memory, or reads it. */
function isView({ index }: Store, id: number): boolean {
  const { group, op } = index.node(id);
  return (group === "movement" && isTensor(index.trace, index.node(id))) || op === "LOAD" || op === "BUFFER";
}

/** Selects the LazyBuffers from which the selection derives, and shows them. */
export function makeOriginText(store: Store): void {
  const { index, selected, cursor } = store;
  if (selected.size === 0) return;
  const [first] = selected;
  const isOrigin = (id: number): boolean => isTensor(index.trace, index.node(id));
  const origins = isOrigin(first) ? [...selected] : findNearestOrigins(store, selected);
  store.go({ graph: "lazy", place: "lazy", tabs: { ...cursor.tabs, a: "source 0" } });
  if (origins.length > 0) store.select(origins);
}

function findNearestOrigins(store: Store, selected: Set<number>): number[] {
  const { index, cursor } = store;
  const past = index.ancestors(selected, cursor.kernel);
  return [...past].filter((id) => isTensor(index.trace, index.node(id)));
}
