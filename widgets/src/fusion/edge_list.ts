// The edges of a schedule as a list with keyboard access: cuts, joins, and possible changes.

import { button, h, replaceChildren } from "../dom";
import { count } from "../format";
import type { TraceIndex } from "../trace_index";
import { type BoardEdge, changeOf } from "./board_store";

const MOST = 120;
const SIGNS: Record<string, string> = { fused: "•", cut: "‖", again: "○", read: " " };

export class EdgeList {
  readonly element = h("div", { class: "fusion-edges scroll", tabindex: 0, role: "group", "aria-label": "Edges" });

  constructor(
    private readonly choose: (edge: BoardEdge) => void,
    private readonly act: (edge: BoardEdge) => void,
    private readonly reachable: (edge: BoardEdge) => boolean,
  ) {}

  /** Draws the user's decisions first, then cuts, then operations; values in memory need no decision. */
  draw(index: TraceIndex, edges: readonly BoardEdge[], chosen: [number, number] | null): void {
    const rank = (edge: BoardEdge): number =>
      edge.override !== null ? 0 : edge.mark === "cut" ? 1 : index.node(edge.src).group === "movement" ? 3 : 2;
    const all = edges
      .filter(({ mark }) => mark !== "read")
      .sort((a, b) => rank(a) - rank(b) || a.src - b.src || a.dst - b.dst);
    const rows = all
      .slice(0, MOST)
      .map((edge) => this.makeRow(index, edge, chosen !== null && edge.src === chosen[0] && edge.dst === chosen[1]));
    const scrolled = this.element.scrollTop;
    const focused = this.element.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset.edge
      : undefined;
    const more =
      all.length > MOST ? [h("p", { class: "faint" }, `${count(all.length - MOST, "more edge")} in the graph`)] : [];
    replaceChildren(this.element, h("h4", {}, count(all.length, "edge")), h("div", { role: "list" }, ...rows), ...more);
    this.element.scrollTop = scrolled;
    if (focused !== undefined)
      this.element.querySelector<HTMLElement>(`button[data-edge="${focused}"]`)?.focus({ preventScroll: true });
  }

  /** Marks the selected edge. */
  mark(chosen: [number, number] | null): void {
    for (const row of this.element.querySelectorAll<HTMLElement>(".fusion-edge"))
      row.setAttribute("aria-pressed", String(chosen !== null && row.dataset.edge === chosen.join("-")));
  }

  private makeRow(index: TraceIndex, edge: BoardEdge, chosen: boolean): HTMLElement {
    const { src, dst, mark, override } = edge;
    const what = changeOf(edge);
    const key = `${src}-${dst}`;
    const words = h(
      "button",
      {
        type: "button",
        class: "fusion-edge",
        "data-edge": key,
        title: edge.decision?.reason ?? null,
        "aria-pressed": String(chosen),
        onclick: () => this.choose(edge),
      },
      h("span", { class: "fusion-mark", "aria-hidden": "true" }, SIGNS[mark]),
      `${nodeName(index, src)} → ${nodeName(index, dst)}`,
    );
    const act = button(
      what === "cut" ? "✂" : "⊕",
      edge.illegal !== ""
        ? `Cannot be ${what === "cut" ? "cut" : "joined"}: ${edge.illegal}`
        : what === "cut"
          ? "Cut here"
          : "Join here",
      () => this.act(edge),
      "quiet",
    );
    act.dataset.edge = `${key}-act`;
    act.disabled = !this.reachable(edge);
    return h(
      "div",
      { role: "listitem", class: `fusion-row ${mark}` },
      words,
      override === null ? null : h("span", { class: "chip" }, override === "cut" ? "you cut" : "you joined"),
      act,
    );
  }
}

/** Returns the name of a LazyBuffer: the user's, else its operation; with its number. */
export function nodeName(index: TraceIndex, id: number): string {
  const { name, label } = index.node(id);
  return `${name !== "" ? name : label} #${id}`;
}
