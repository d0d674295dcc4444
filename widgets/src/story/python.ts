// First page: the user's lines, with each expression that creates operations in color, and its operations.

import { type Child, h, replaceChildren, s } from "../dom";
import { count, truncate } from "../format";
import type { Store } from "../store";
import { COUNTED, type Expression, type Op, type OpGraph, listComputing, buildOpGraph } from "./op_graph";
import { type Page, bold, code, joinList, toneClass } from "./page";

const MOST_CARDS = 9;
const MOST_LINES = 9;

interface Piece {
  text: string;
  /** The expression whose own part this text is. */
  expression: number | null;
}

interface Line {
  number: number;
  pieces: Piece[];
}

/**
 * Returns the lines of the program with the own part of each expression; for a single line, only parts that create
 * operations.
 */
export function listProgramLines(graph: OpGraph, sources: readonly { text: string }[]): Line[] {
  const spans = graph.expressions.filter(({ frame }) => frame !== null);
  const keys = new Map<string, Expression[]>();
  for (const expression of spans) {
    const key = `${expression.frame!.source}:${expression.frame!.line}`;
    keys.set(key, [...(keys.get(key) ?? []), expression]);
  }
  const places = [...keys.values()].sort(
    ([a], [b]) => a.frame!.source - b.frame!.source || a.frame!.line - b.frame!.line,
  );
  return places.map((lineExpressions) => {
    const { source, line } = lineExpressions[0].frame!;
    const text = sources[source]?.text.split("\n")[line - 1] ?? "";
    const owner: (number | null)[] = Array.from(text, () => null);
    // the widest first, so that an inner expression keeps its own characters
    const wide = [...lineExpressions].sort((a, b) => widthOf(b, line, text) - widthOf(a, line, text));
    for (const expression of wide) {
      const [from, to] = findColumns(expression, line, text);
      for (let i = from; i < to; i += 1) if (text[i] !== " ") owner[i] = expression.id;
    }
    const [from, to] =
      places.length === 1 ? trimToOperations(text, owner) : [text.length - text.trimStart().length, text.length];
    return { number: line, pieces: piecesOf(text, owner, from, to) };
  });
}

function findColumns({ frame }: Expression, line: number, text: string): [number, number] {
  const span = frame!.span;
  if (span === null) return [text.length - text.trimStart().length, text.length];
  const [first, from, last, to] = span;
  return [first === line ? from : 0, last === line ? to : text.length];
}

function widthOf(expression: Expression, line: number, text: string): number {
  const [from, to] = findColumns(expression, line, text);
  return to - from;
}

/** Returns the range from the first to the last character that creates operations, with matching brackets. */
function trimToOperations(text: string, owner: readonly (number | null)[]): [number, number] {
  let from = owner.findIndex((id) => id !== null);
  const to = owner.findLastIndex((id) => id !== null) + 1;
  const open = (): number => {
    const inner = text.slice(from, to);
    return (inner.match(/[)\]}]/g)?.length ?? 0) - (inner.match(/[([{]/g)?.length ?? 0);
  };
  while (from > 0 && open() > 0) from -= 1;
  while (from > 0 && /[\w.]/.test(text[from - 1]) && /[\w.]/.test(text[from])) from -= 1;
  return [from, to];
}

function piecesOf(text: string, owner: readonly (number | null)[], from: number, to: number): Piece[] {
  const pieces: Piece[] = [];
  for (let i = from; i < to; i += 1) {
    const blank = text[i] === " " && owner[i - 1] !== null && owner[i - 1] === owner[i + 1];
    const expression = blank ? owner[i - 1] : owner[i];
    const last = pieces.at(-1);
    if (last !== undefined && last.expression === expression) last.text += text[i];
    else pieces.push({ text: text[i], expression });
  }
  return pieces;
}

interface Card {
  expression: Expression;
  ops: Op[];
  element: HTMLElement;
}

export class PythonPage implements Page {
  readonly element = h("div", { class: "story-python" });
  readonly beat = 1500;
  private readonly graph: OpGraph;
  private readonly cards: Card[];
  private readonly arrows = s("svg", { class: "arrows", "aria-hidden": "true" });
  private readonly groups = h("div", {
    class: "cards",
    tabindex: 0,
    role: "group",
    "aria-label": "What each part builds",
  });
  private readonly isLong: boolean;
  private step = 0;
  private readonly sizes = new ResizeObserver(() => {
    this.fitCards();
    this.drawArrows(false);
  });

  constructor(private readonly store: Store) {
    const { trace } = store.index;
    this.graph = buildOpGraph(store.index);
    const expressionOps = this.graph.expressions.map((expression) => ({
      expression,
      ops: this.graph.ops.filter((op) => op.expression === expression.id && op.kind !== "input"),
    }));
    const chosen = expressionOps.filter(({ ops }) => ops.length > 0);
    const largest = [...chosen].sort((a, b) => b.ops.length - a.ops.length).slice(0, MOST_CARDS);
    this.cards = chosen
      .filter((entry) => largest.includes(entry))
      .map((entry, i) => ({ ...entry, element: this.makeCard(entry.expression, entry.ops, i) }));
    const hiddenCount = chosen.length - this.cards.length;
    const lines = listProgramLines(this.graph, trace.sources);
    const shownLines = lines.slice(0, MOST_LINES);
    const rows = shownLines.map(({ number, pieces }) => this.makeLine(number, pieces, lines.length > 1));
    const more =
      lines.length > shownLines.length
        ? h("p", { class: "faint" }, `and ${count(lines.length - shownLines.length, "more line")}`)
        : null;
    const length = Math.max(1, ...lines.map(({ pieces }) => pieces.reduce((sum, { text }) => sum + text.length, 0)));
    const program = h(
      "div",
      { class: "program", style: `--letters:${length};--lines:${shownLines.length}` },
      ...rows,
      more,
    );
    this.groups.append(...this.cards.map(({ element }) => element));
    if (hiddenCount > 0)
      this.groups.append(h("p", { class: "faint more" }, `and ${count(hiddenCount, "more expression")}`));
    this.element.append(program, this.arrows, this.groups);
    this.isLong = shownLines.length > 2 || this.cards.length > 4;
    this.sizes.observe(this.element);
  }

  get count(): number {
    return Math.max(1, this.cards.length);
  }

  private makeLine(number: number, pieces: readonly Piece[], numbered: boolean): HTMLElement {
    const parts = pieces.map(({ text, expression }) => {
      const cardIndex = this.cards.findIndex((card) => card.expression.id === expression);
      if (cardIndex < 0) return h("span", {}, text);
      const choose = (): void => this.store.select(this.cards[cardIndex].expression.nodes);
      return h(
        "button",
        {
          type: "button",
          class: `part ${toneClass(cardIndex)}`,
          "data-card": cardIndex,
          title: "Select what this builds",
          onclick: choose,
        },
        text,
      );
    });
    return h("div", { class: "program-line" }, numbered ? h("u", {}, String(number)) : null, ...parts);
  }

  private makeCard(expression: Expression, ops: readonly Op[], cardIndex: number): HTMLElement {
    const { trace } = this.store.index;
    const views = expression.nodes.filter((id) => trace.nodes[id].group === "movement").length;
    const constants = expression.nodes.filter((id) => trace.nodes[id].group === "const").length;
    const counts = [
      count(ops.length, "operation"),
      views > 0 ? count(views, "view") : "",
      constants > 0 ? count(constants, "constant") : "",
    ].filter(Boolean);
    const limit = 5;
    const chips = ops.slice(0, limit).flatMap((op, i) => {
      const chip = h(
        "span",
        { class: `op-chip ${op.kind}`, title: op.code },
        h("b", {}, op.label),
        h("small", {}, op.shape),
      );
      return [i === 0 ? chip : h("span", { class: "linked" }, h("i", { "aria-hidden": "true" }, "→"), chip)];
    });
    if (ops.length > limit) chips.push(h("i", {}, `+ ${ops.length - limit}`));
    return h(
      "section",
      {
        class: `expr-card ${toneClass(cardIndex)}`,
        "data-card": cardIndex,
        style: `--weight:${Math.min(limit, ops.length) + 1}`,
      },
      h("h3", { title: expression.text }, truncate(expression.short, 42)),
      h("p", { class: "faint", title: COUNTED }, counts.join(", ")),
      h("div", { class: "op-chips" }, ...chips),
    );
  }

  show(step: number, ms: number): void {
    this.step = step;
    for (const piece of this.element.querySelectorAll<HTMLElement>("[data-card]")) {
      const cardIndex = Number(piece.dataset.card);
      piece.classList.toggle("off", cardIndex > step);
      piece.classList.toggle("current", cardIndex === step && this.cards.length > 1);
    }
    this.drawArrows(ms > 0);
  }

  /** Low cards where high ones have no room; the operations of a card in one line where these have none either. */
  private fitCards(): void {
    const isOver = ({ scrollHeight, clientHeight }: HTMLElement): boolean => scrollHeight > clientHeight + 1;
    const { element, groups } = this;
    element.classList.remove("is-tight");
    element.classList.toggle("is-long", this.isLong);
    if (isOver(element)) element.classList.add("is-long");
    element.classList.toggle("is-tight", isOver(groups));
  }

  /** Draws arrows from each part of the program to its card; a new arrow is animated like a pen stroke. */
  private drawArrows(moves: boolean): void {
    replaceChildren(this.arrows);
    const box = this.element.getBoundingClientRect();
    if (this.element.classList.contains("is-long") || box.width < 820) return;
    for (let cardIndex = 0; cardIndex <= this.step; cardIndex += 1) {
      const parts = this.element.querySelectorAll(`.part[data-card="${cardIndex}"]`);
      const card = this.element.querySelector(`.expr-card[data-card="${cardIndex}"]`);
      const widest = [...parts].sort((a, b) => b.getBoundingClientRect().width - a.getBoundingClientRect().width)[0];
      if (widest === undefined || card === null) continue;
      const [a, b] = [widest.getBoundingClientRect(), card.getBoundingClientRect()];
      const [x1, y1] = [a.left + a.width / 2 - box.left, a.bottom - box.top + 5];
      const [x2, y2] = [b.left + b.width / 2 - box.left, b.top - box.top - 3];
      if (y2 - y1 < 24) continue;
      const m = (y2 - y1) / 2;
      const d = `M${x1} ${y1}C${x1} ${y1 + m} ${x2} ${y2 - m} ${x2} ${y2}m-6 -8l6 8l6 -8`;
      const path = s("path", { d, class: toneClass(cardIndex), pathLength: 1 });
      if (moves && cardIndex === this.step) path.classList.add("drawn");
      this.arrows.append(path);
    }
  }

  head(step: number): Child[] {
    const { expressions } = this.graph;
    const { trace } = this.store.index;
    const nodes = expressions.flatMap((expression) => expression.nodes);
    const views = nodes.filter((id) => trace.nodes[id].group === "movement").length;
    const constants = nodes.filter((id) => trace.nodes[id].group === "const").length;
    const othersText = [
      views > 0 ? count(views, "view") : "",
      constants > 0 ? count(constants, "constant") : "",
    ].filter(Boolean);
    const lines = new Set(expressions.map(({ frame }) => `${frame?.source}:${frame?.line}`)).size;
    const what = lines === 1 ? "This line builds " : `These ${lines} lines build `;
    const others =
      othersText.length > 0
        ? ` ${lines === 1 ? "It also builds" : "They also build"} ${joinList(othersText)}, which compute${views + constants === 1 ? "s" : ""} nothing.`
        : "";
    const computing = listComputing(this.graph);
    const foreign = computing.filter(({ expression }) => expression === null).length;
    const from = foreign > 0 ? `, ${foreign} of them without a line here` : "";
    const card = this.cards[step];
    const now =
      card === undefined || this.cards.length < 2 ? [] : [" Here: ", code(truncate(card.expression.short, 40)), "."];
    return [what, bold(count(computing.length, "operation")), `${from}.${others}`, ...now];
  }

  caption(step: number): string {
    const card = this.cards[step];
    return card === undefined
      ? ""
      : `${truncate(card.expression.short, 32)}: ${card.ops
          .map(({ label }) => label)
          .slice(0, 3)
          .join(", ")}`;
  }

  destroy(): void {
    this.sizes.disconnect();
  }
}
