// A shape as grids: each element with its memory position, beside memory with the elements that are read. Movement
// buttons send requests to Python; hovering and scrolling are handled here.

import { count, groupDigits } from "../format";
import type { SendRequest } from "../request_channel";
import { button, h, replaceChildren } from "../dom";
import {
  type CellRange,
  type Cell,
  cellsOf,
  memoryWidth,
  memoryWindow,
  chooseBox,
  sizesText,
  viewText,
} from "../shape_cells";
import type { Change, Store, View } from "../store";
import type { ShapeData, ShapeStepData } from "../requests";

type Move = [string, string];

const HUES = 4; // hues of other views, in turn
const SHOWN_OTHERS = 2; // until the user opens more

export class ShapeView implements View {
  readonly element = h("div", { class: "shape scroll", tabindex: 0, role: "region", "aria-label": "Shape" });
  private readonly description = h("p", { class: "said", role: "status" });
  private node: number | null | undefined = undefined;
  private data: ShapeData | null = null;
  private moves: Move[] = [];
  private op = "permute";
  private arg = "";
  private step = 0;
  private first: number[] = [];
  private firstPlace: number | null = null;
  private hidden = new Set<number>();
  private cells: { cell: Cell; element: HTMLElement }[] = [];
  private places = new Map<number, HTMLElement>();
  private active: number | null = null;

  /** `alone`: whether it is a standalone widget, which has no tab. */
  constructor(
    private readonly store: Store,
    private readonly alone = false,
  ) {
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor || change.selection) this.draw();
  }

  private draw(): void {
    const { cursor, selected } = this.store;
    if (!this.alone && cursor.panel !== "shape") return;
    const node = selected.size === 0 ? null : [...selected][0];
    if (node === this.node || (node === null && this.data !== null)) return;
    this.node = node;
    this.moves = [];
    void this.request();
  }

  /** Requests the shape of the node after the user's movements; an invalid movement changes nothing. */
  private async request(moves: Move[] = this.moves): Promise<void> {
    const { node } = this;
    const { sendRequest } = this.store;
    this.element.setAttribute("aria-busy", "true");
    try {
      const data = sendRequest === null ? this.findRecorded(node ?? null) : await this.answer(sendRequest, moves);
      if (node !== this.node) return;
      if (data.node !== this.data?.node)
        this.hidden = new Set([...data.others.keys()].filter((i) => i >= SHOWN_OTHERS));
      this.data = data;
      this.moves = moves;
      this.show(data.steps.length - 1);
    } catch (error) {
      if (node === this.node) this.refuse(error instanceof Error ? error.message : String(error));
    } finally {
      this.element.removeAttribute("aria-busy");
    }
  }

  private answer(ask: SendRequest, moves: Move[]): Promise<ShapeData> {
    return ask({ ask: "shape", ...(this.node === null ? {} : { node: this.node }), moves });
  }

  /** Returns the stored response for the node, or for the node that it derives from. */
  private findRecorded(node: number | null): ShapeData {
    const shapes = new Map(this.store.responses.of("shape").map(([question, data]) => [question.node ?? -1, data]));
    const recordedNodes = [...shapes.keys()];
    const origins =
      node === null
        ? recordedNodes
        : [...this.store.index.ancestors(new Set([node]), this.store.cursor.kernel)].filter((id) =>
            recordedNodes.includes(id),
          );
    const nearest =
      node !== null && recordedNodes.includes(node)
        ? node
        : origins.sort((a, b) => shapes.get(b)!.steps.length - shapes.get(a)!.steps.length)[0];
    if (nearest === undefined)
      throw new Error(
        recordedNodes.length === 0
          ? "No tensor of this trace is a view of another one."
          : "The selected node is not a view. Select a RESHAPE, PERMUTE or PAD, or a LOAD of a view.",
      );
    return shapes.get(nearest)!;
  }

  private refuse(message: string): void {
    const text = message.replace(/^\w+: /, "");
    const alert = h("p", { class: "note", role: "alert" }, text);
    const before = this.element.querySelector("[role=alert]");
    const moves = this.element.querySelector(".moves");
    if (before !== null) before.replaceWith(alert);
    else if (moves !== null) moves.after(alert);
    else replaceChildren(this.element, alert);
  }

  // *** drawing ***

  private show(step: number): void {
    const data = this.data!;
    const focus = this.element.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset.focus
      : undefined;
    this.step = Math.max(0, Math.min(step, data.steps.length - 1));
    this.first = [];
    this.firstPlace = null;
    replaceChildren(
      this.element,
      this.makeWay(data),
      this.makeControls(data),
      ...this.describeStep(data.steps[this.step]),
      h("div", { class: "grids" }),
    );
    this.drawGrids();
    if (focus !== undefined) this.element.querySelector<HTMLElement>(`[data-focus="${focus}"]`)?.focus();
  }

  /** Returns the movements so far; a click shows the shape at that step. */
  private makeWay(data: ShapeData): HTMLElement {
    const ownFrom = data.steps.length - this.moves.length;
    const steps = data.steps.map((step, i) => {
      const name = i === 0 ? `${data.name} ` : `${step.op.toLowerCase()} ${step.arg} `;
      const element = button(
        name,
        i === 0 ? "The first shape" : step.law,
        () => this.show(i),
        i < ownFrom ? "step" : "step own",
      );
      element.append(h("b", {}, sizesText(step.shape)));
      element.dataset.focus = `step ${i}`;
      element.setAttribute("aria-current", i === this.step ? "step" : "false");
      return element;
    });
    const undo =
      this.moves.length === 0
        ? null
        : button("undo", "Remove the last movement that you added", () => void this.request(this.moves.slice(0, -1)));
    return h("div", { class: "way", role: "group", "aria-label": "Movements" }, ...steps, undo);
  }

  private makeControls(data: ShapeData): HTMLElement {
    if (this.store.sendRequest === null)
      return h(
        "p",
        { class: "note faint moves" },
        "To add movements, call ",
        h("code", {}, `view.panels.shape_of(${data.node}).permute(…)`),
      );
    const fitting = data.moves.filter(([, suggestion]) => suggestion !== "");
    const suggestions = new Map(fitting.map(([op, suggestion]) => [op, suggestion]));
    if (!suggestions.has(this.op)) this.op = fitting[0]?.[0] ?? "reshape";
    this.arg = suggestions.get(this.op) ?? "";
    const input = h("input", {
      type: "text",
      value: this.arg,
      "aria-label": "Argument of the movement",
      "data-focus": "argument",
      oninput: (event: Event) => (this.arg = (event.target as HTMLInputElement).value),
      onkeydown: (event: KeyboardEvent) => {
        event.stopPropagation();
        if (event.key === "Enter") this.apply();
      },
    });
    const law = h("span", { class: "faint" });
    const buttons = fitting.map(([op, suggestion, words]) => {
      const choose = (): void => {
        this.op = op;
        this.arg = input.value = suggestion;
        law.textContent = words;
        for (const other of buttons) other.setAttribute("aria-pressed", String(other === element));
      };
      const element = button(op, `${words} (a double click applies it)`, choose);
      element.addEventListener("dblclick", () => this.apply());
      element.dataset.focus = op;
      element.setAttribute("aria-pressed", String(op === this.op));
      if (op === this.op) law.textContent = words;
      return element;
    });
    const apply = button("Apply", "Apply the movement (Enter)", () => this.apply());
    apply.dataset.focus = "apply";
    return h("div", { class: "moves", role: "group", "aria-label": "Add a movement" }, ...buttons, input, apply, law);
  }

  private apply(): void {
    void this.request([...this.moves, [this.op, this.arg]]);
  }

  /** Returns the effect of the last movement, the views, and the index expression before and after simplification. */
  private describeStep(step: ShapeStepData): HTMLElement[] {
    const text = ([place, valid]: [string, string]): string => (valid === "" ? place : `${place}   if ${valid}`);
    const fact = (name: string, value: string): HTMLElement =>
      h("div", { class: "fact" }, h("span", { class: "faint" }, name), h("code", {}, value));
    const facts = step.views.map((view, i) => fact(step.views.length === 1 ? "view" : `view ${i}`, viewText(view)));
    if (step.formula !== "") facts.unshift(fact(step.op.toLowerCase(), step.formula));
    facts.push(fact("offset", text(step.before)));
    facts.push(fact("simplified", text(step.after) === text(step.before) ? "nothing to simplify" : text(step.after)));
    return [h("div", { class: "facts" }, ...facts)];
  }

  private drawGrids(): void {
    const data = this.data!;
    const step = data.steps[this.step];
    const box = chooseBox(step.shape, this.first);
    const cells = cellsOf(step.views, box);
    const offsets = cells.flatMap(({ offset }) => (offset === null ? [] : [offset]));
    this.active = null;
    this.description.textContent = "Point at an element or a position in memory, or use the arrow keys.";
    replaceChildren(
      this.element.querySelector(".grids")!,
      this.makeElements(step, box, cells),
      this.makeMemory(data, offsets),
      this.description,
    );
  }

  private makeElements(step: ShapeStepData, box: CellRange, cells: Cell[]): HTMLElement {
    const columns = box.length === 0 ? 1 : box.at(-1)![1] - box.at(-1)![0];
    const rows = box.length < 2 ? 1 : box.at(-2)![1] - box.at(-2)![0];
    this.cells = cells.map((cell) => {
      const { index, offset } = cell;
      const element = h(
        "span",
        { class: offset === null ? "place padding" : "place" },
        offset === null ? "·" : String(offset),
      );
      const point = (): void => this.pointAtElement(index);
      element.addEventListener("pointerenter", point);
      return { cell, element };
    });
    const planes: HTMLElement[] = [];
    for (let start = 0; start < cells.length; start += rows * columns) {
      const outer = cells[start].index.slice(0, -2);
      const label = outer.length === 0 ? null : h("div", { class: "faint" }, `[${outer.join(", ")}, …]`);
      const heads = Array.from({ length: columns }, (_, i) =>
        h("span", { class: "head" }, String((box.at(-1)?.[0] ?? 0) + i)),
      );
      const lines = Array.from({ length: rows }, (_, row) => {
        const head = h("span", { class: "head" }, box.length < 2 ? "" : String(box.at(-2)![0] + row));
        return [
          head,
          ...this.cells.slice(start + row * columns, start + (row + 1) * columns).map(({ element }) => element),
        ];
      });
      planes.push(
        h(
          "div",
          { class: "plane" },
          label,
          h(
            "div",
            { class: "cells", style: `--width:${columns}` },
            h("span", { class: "head" }),
            ...heads,
            ...lines.flat(),
          ),
        ),
      );
    }
    const label = `elements of ${sizesText(step.shape)}: the memory offset of each`;
    const grid = h(
      "div",
      {
        class: "grid",
        tabindex: 0,
        role: "group",
        "aria-label": `${label}; arrow keys move the selection`,
        "data-focus": "elements",
      },
      ...planes,
    );
    grid.addEventListener("keydown", (event) => this.walk(event, columns));
    grid.addEventListener("pointerleave", () => this.highlight(null, []));
    return h(
      "figure",
      {},
      h(
        "figcaption",
        {},
        h("b", {}, "elements"),
        h("span", { class: "faint" }, ` · the memory offset of each${shownText(step.shape, box)}`),
      ),
      ...this.makeSliders(step.shape, box),
      grid,
    );
  }

  /** Returns a slider for each axis that is partly visible. */
  private makeSliders(shape: number[], box: CellRange): HTMLElement[] {
    return box.flatMap(([start, stop], axis) => {
      if (stop - start === shape[axis]) return [];
      const move = (event: Event): void => {
        const first = box.map(([begin]) => begin);
        first[axis] = Number((event.target as HTMLInputElement).value);
        this.first = first;
        this.drawGrids();
        this.element.querySelector<HTMLElement>(`[data-focus="axis ${axis}"]`)?.focus();
      };
      const slider = h("input", {
        type: "range",
        min: 0,
        max: shape[axis] - (stop - start),
        value: start,
        "data-focus": `axis ${axis}`,
        "aria-label": `First of axis ${axis}`,
        oninput: move,
      });
      slider.addEventListener("keydown", (event) => event.stopPropagation());
      return [
        h(
          "label",
          { class: "slide" },
          `i${axis} `,
          slider,
          h("span", { class: "faint" }, ` ${start} … ${stop - 1} of ${groupDigits(shape[axis])}`),
        ),
      ];
    });
  }

  private makeMemory(data: ShapeData, offsets: number[]): HTMLElement {
    const width = memoryWidth(data.steps);
    const counts = new Map<number, number>();
    for (const offset of offsets) counts.set(offset, (counts.get(offset) ?? 0) + 1);
    const [start, stop] = memoryWindow(
      data.size,
      width,
      this.firstPlace ?? offsets.reduce((a, b) => Math.min(a, b), offsets[0] ?? 0),
    );
    const beside = data.others.map(({ views }, i) =>
      this.hidden.has(i)
        ? new Set<number | null>()
        : new Set(cellsOf(views, chooseBox(views.at(-1)![0])).map(({ offset }) => offset)),
    );
    this.places.clear();
    const boxes = Array.from({ length: stop - start }, (_, i) => {
      const elementIndex = start + i;
      const times = counts.get(elementIndex) ?? 0;
      const bars = beside.flatMap((places, k) =>
        places.has(elementIndex) ? [h("i", { class: `view${k % HUES}` })] : [],
      );
      const element = h(
        "span",
        { class: times === 0 ? "place unread" : times === 1 ? "place" : "place often" },
        String(elementIndex),
        bars.length === 0 ? null : h("span", { class: "bars" }, ...bars),
      );
      element.addEventListener("pointerenter", () => this.pointAtOffset(elementIndex));
      this.places.set(elementIndex, element);
      return element;
    });
    const shownPart =
      stop - start < data.size
        ? ` · ${start} … ${stop - 1} of ${groupDigits(data.size)}`
        : ` · ${count(data.size, "position")}`;
    const slide = (event: Event): void => {
      this.firstPlace = Number((event.target as HTMLInputElement).value) * width;
      this.drawGrids();
      this.element.querySelector<HTMLElement>('[data-focus="memory"]')?.focus();
    };
    const last = Math.ceil(data.size / width) - Math.ceil((stop - start) / width);
    const slider =
      last <= 0
        ? null
        : h(
            "label",
            { class: "slide" },
            "from ",
            h("input", {
              type: "range",
              min: 0,
              max: last,
              value: start / width,
              "data-focus": "memory",
              "aria-label": "First row of memory",
              oninput: slide,
              onkeydown: (event: Event) => event.stopPropagation(),
            }),
          );
    const grid = h(
      "div",
      {
        class: "grid",
        role: "img",
        "aria-label": `memory${shownPart}: ${counts.size} offsets are read by the elements shown`,
      },
      h("div", { class: "cells bare", style: `--width:${width}` }, ...boxes),
    );
    grid.addEventListener("pointerleave", () => this.highlight(null, []));
    return h(
      "figure",
      {},
      h("figcaption", {}, h("b", {}, data.name), h("span", { class: "faint" }, shownPart)),
      slider,
      grid,
      this.makeKey(data),
    );
  }

  /** Returns the legend; other views of the same memory can be overlaid. */
  private makeKey(data: ShapeData): HTMLElement {
    const others = data.others.map(({ name }, i) => {
      const change = (event: Event): void => {
        if ((event.target as HTMLInputElement).checked) this.hidden.delete(i);
        else this.hidden.add(i);
        this.drawGrids();
        this.element.querySelector<HTMLElement>(`[data-focus="other ${i}"]`)?.focus();
      };
      const box = h("input", {
        type: "checkbox",
        checked: !this.hidden.has(i),
        "data-focus": `other ${i}`,
        onchange: change,
      });
      return h("label", { class: "beside" }, box, h("i", { class: `view${i % HUES}` }), name);
    });
    const swatch = (cls: string, text: string): HTMLElement =>
      h("span", { class: "key" }, h("span", { class: `place ${cls}` }), text);
    return h(
      "div",
      { class: "keys" },
      swatch("", "read"),
      swatch("often", "read several times"),
      swatch("unread", "not read here"),
      ...(others.length === 0 ? [] : [h("span", { class: "faint" }, "also viewed as"), ...others]),
    );
  }

  // *** hover ***

  private pointAtElement(index: number[]): void {
    const cellNumber = this.cells.findIndex(({ cell }) => cell.index.every((i, axis) => i === index[axis]));
    this.active = cellNumber;
    const { cell } = this.cells[cellNumber];
    this.highlight(cell.offset, [cellNumber]);
    this.description.textContent =
      cell.offset === null
        ? `[${index.join(", ")}] is padding: no memory is read`
        : `[${index.join(", ")}] is at offset ${cell.offset}`;
  }

  private pointAtOffset(offset: number): void {
    const readers = this.cells.flatMap(({ cell }, i) => (cell.offset === offset ? [i] : []));
    this.highlight(offset, readers);
    const names = readers.slice(0, 6).map((i) => `[${this.cells[i].cell.index.join(", ")}]`);
    const more = readers.length > 6 ? ` and ${readers.length - 6} more` : "";
    this.description.textContent =
      readers.length === 0
        ? `offset ${offset}: no element shown reads it`
        : `offset ${offset} is read by ${names.join(", ")}${more}`;
  }

  private highlight(offset: number | null, elements: number[]): void {
    for (const lit of this.element.querySelectorAll(".place.lit")) lit.classList.remove("lit");
    for (const i of elements) this.cells[i].element.classList.add("lit");
    if (offset !== null) this.places.get(offset)?.classList.add("lit");
  }

  private walk(event: KeyboardEvent, columns: number): void {
    const steps: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    const by = steps[event.key];
    if (by === undefined || event.altKey || this.cells.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = this.active === null ? 0 : this.active + by;
    if (next >= 0 && next < this.cells.length) this.pointAtElement(this.cells[next].cell.index);
  }
}

function shownText(shape: number[], box: CellRange): string {
  const isWhole = box.every(([start, stop], axis) => stop - start === shape[axis]);
  return isWhole ? "" : ` · [${box.map(([start, stop]) => `${start}:${stop}`).join(", ")}] of ${sizesText(shape)}`;
}

/** The shape view as a standalone widget. */
export class LoneShapeView extends ShapeView {
  constructor(store: Store) {
    super(store, true);
  }
}
