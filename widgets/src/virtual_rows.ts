// A long list with elements only for visible rows; all rows have the same height.

import { h, oncePerFrame } from "./dom";

export const LONG = 200; // rows; a shorter list has elements for all
const MARGIN = 12; // rows above and below the visible ones

/**
 * Returns the range of rows to create, for `count` rows of `height` pixels with `top` … `top + room` pixels visible.
 */
export function findVisibleRows(
  count: number,
  height: number,
  top: number,
  room: number,
): [first: number, end: number] {
  const first = Math.max(0, Math.min(count, Math.floor(top / height) - MARGIN));
  return [first, Math.min(count, Math.ceil((top + room) / height) + MARGIN)];
}

export class VirtualRows {
  readonly element = h("div", { class: "virtual", role: "list" });
  private first = -1;
  private end = -1;

  /** `box`: the scrolling element. `drawn`: called when the rows change. */
  constructor(
    private readonly box: HTMLElement,
    private readonly count: number,
    private readonly height: number,
    private readonly make: (row: number) => HTMLElement,
    private readonly drawn: () => void,
  ) {
    this.element.style.height = `${count * height}px`;
    this.draw();
  }

  /** Call this after `box` has scrolled. */
  readonly follow = oncePerFrame(() => this.draw());

  private draw(): void {
    const [first, end] = findVisibleRows(this.count, this.height, this.box.scrollTop, this.box.clientHeight || 600);
    if (first === this.first && end === this.end) return;
    [this.first, this.end] = [first, end];
    const rows = Array.from({ length: end - first }, (_, i) => {
      const row = this.make(first + i);
      row.style.top = `${(first + i) * this.height}px`;
      row.style.height = `${this.height}px`;
      row.setAttribute("role", "listitem");
      row.setAttribute("aria-posinset", String(first + i + 1));
      row.setAttribute("aria-setsize", String(this.count));
      return row;
    });
    this.element.replaceChildren(...rows);
    this.drawn();
  }
}
