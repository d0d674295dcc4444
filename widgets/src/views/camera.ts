// The camera over a drawing: pan, zoom, fit, the first view of a graph, and the minimap; knows nothing of what is drawn.

import { oncePerFrame, s } from "../dom";

export type Rectangle = [left: number, top: number, right: number, bottom: number];

interface Bounds {
  left: number;
  top: number;
  width: number;
  height: number;
}

interface Hooks {
  /** After every move, once a frame. */
  moved: () => void;
  clicked: (event: MouseEvent) => void;
}

const MARGIN = 18;
/** A graph opens at this zoom or a larger one, at which its smallest words are 11 pixels high. */
export const LEGIBLE = 1;
const CLOSEST = 1.1;
const SMALL = 0.55; // zoom below which an edge needs no numbers
const REST_MS = 140; // without a turn of the wheel: then the drawing is made at its new size
const MOST_STRETCHED = 1.6; // by which words are stretched until then
const AHEAD = 300; // pixels around what is in sight that are drawn too

export class Camera {
  readonly minimap = s("svg", { class: "minimap", "aria-hidden": "true" });
  zoom = 1;
  private x = 0;
  private y = 0;
  private bounds: Bounds = { left: 0, top: 0, width: 0, height: 0 };
  private focus: Rectangle | null = null;
  private boxes: readonly Rectangle[] = [];
  private measured: { clientWidth: number; clientHeight: number } | null = null; // the canvas, until it changes size
  private untouched: "open" | "fit" | null = null; // until the reader pans or zooms, a new size means a new view
  private readonly sizes: ResizeObserver;
  private drawnAt = { x: 0, y: 0, zoom: 1 }; // where the elements are; the browser moves their picture from there
  private isMoving = false; // by the reader's hand
  private rest: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly svg: SVGSVGElement,
    private readonly world: SVGGElement,
    private readonly canvas: HTMLElement,
    private readonly hooks: Hooks,
  ) {
    this.listen();
    this.sizes = new ResizeObserver(() => this.resized());
    this.sizes.observe(canvas);
  }

  destroy(): void {
    clearTimeout(this.rest);
    this.sizes.disconnect();
  }

  /** The drawing has other bounds; the minimap shows `pieces`, elements in the drawing's units. */
  cover({ left, top, width, height }: Bounds, pieces: SVGElement[]): void {
    this.bounds = { left, top, width, height };
    this.minimap.style.display = pieces.length === 0 ? "none" : "";
    const scale = Math.min(96 / Math.max(1, width), 72 / Math.max(1, height));
    this.minimap.style.width = `${Math.max(20, width * scale)}px`;
    this.minimap.style.height = `${Math.max(14, height * scale)}px`;
    this.minimap.setAttribute("viewBox", `${left} ${top} ${Math.max(1, width)} ${Math.max(1, height)}`);
    this.minimap.replaceChildren(...pieces, s("rect", { class: "view" }));
    this.drawView();
  }

  /** Asked for at every step, so measured only after a change: a measurement makes the browser lay out the page. */
  private get size(): { width: number; height: number } {
    const { clientWidth: width, clientHeight: height } = this.measured ?? this.canvas;
    if (this.measured === null && width > 0 && height > 0) this.measured = { clientWidth: width, clientHeight: height };
    return { width: width || 600, height: height || 380 };
  }

  fit(): void {
    const { width, height } = this.size;
    const across = (width - 2 * MARGIN) / Math.max(1, this.bounds.width);
    const down = (height - 2 * MARGIN) / Math.max(1, this.bounds.height);
    const zoom = Math.max(0.02, Math.min(CLOSEST, across, down));
    this.untouched = "fit";
    this.moveTo(
      width / 2 - (this.bounds.left + this.bounds.width / 2) * zoom,
      height / 2 - (this.bounds.top + this.bounds.height / 2) * zoom,
      zoom,
    );
  }

  /** The whole graph; of one too large to be read so, the part around `focus`, or of its beginning where most `boxes` are. */
  open(focus: Rectangle | null, boxes: readonly Rectangle[] = []): void {
    this.fit();
    this.focus = focus;
    this.boxes = boxes;
    this.untouched = "open";
    if (this.zoom >= LEGIBLE) return;
    const { width, height } = this.size;
    const [left, top] = [this.bounds.left * LEGIBLE, this.bounds.top * LEGIBLE];
    const [wide, high] = [this.bounds.width * LEGIBLE, this.bounds.height * LEGIBLE];
    const [x0, y0, x1, y1] = (focus ?? [this.bounds.left + this.bounds.width / 2, this.bounds.top, 0, 0]).map(
      (at) => at * LEGIBLE,
    );
    const first = boxes.filter(([, boxTop]) => (boxTop - this.bounds.top) * LEGIBLE < height - 2 * MARGIN);
    const middle = middleOfMost(first, (width - 2 * MARGIN) / LEGIBLE);
    const atX = focus !== null ? (x0 + x1) / 2 : middle === null ? x0 : middle * LEGIBLE;
    const x =
      wide > width - 2 * MARGIN
        ? clamp(width / 2 - atX, width - MARGIN - left - wide, MARGIN - left)
        : width / 2 - left - wide / 2;
    const y =
      focus === null || high <= height - 2 * MARGIN
        ? MARGIN - top
        : clamp(height / 2 - (y0 + y1) / 2, height - 28 - top - high, MARGIN - top);
    this.moveTo(x, y, LEGIBLE);
  }

  private moveTo(x: number, y: number, zoom: number): void {
    [this.x, this.y, this.zoom] = [x, y, zoom];
    this.svg.classList.toggle("is-small", zoom < SMALL);
    const stretched = zoom / this.drawnAt.zoom;
    if (this.isMoving && stretched < MOST_STRETCHED && stretched > 1 / MOST_STRETCHED) {
      const [dx, dy] = [x - this.drawnAt.x * stretched, y - this.drawnAt.y * stretched];
      this.svg.style.transform = `translate(${dx.toFixed(2)}px,${dy.toFixed(2)}px) scale(${stretched.toFixed(5)})`;
    } else this.drawHere();
    this.settle();
  }

  /** Lets the browser paint the drawing for where the camera is, which takes as long as there are elements. */
  private drawHere(): void {
    const { x, y, zoom } = this;
    this.drawnAt = { x, y, zoom };
    this.svg.style.transform = "";
    this.world.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${zoom.toFixed(4)})`);
  }

  /** The hand has left the drawing. */
  private stopMoving(): void {
    clearTimeout(this.rest);
    if (!this.isMoving) return;
    this.isMoving = false;
    this.drawHere();
  }

  private readonly settle = oncePerFrame(() => {
    this.hooks.moved();
    this.drawView();
  });

  /** What of the world is in sight, and `margin` pixels around it. */
  sight(margin = 0): Rectangle {
    const { width, height } = this.size;
    const { x, y, zoom } = this;
    return [(-x - margin) / zoom, (-y - margin) / zoom, (width - x + margin) / zoom, (height - y + margin) / zoom];
  }

  /** Moves only if none of the boxes is in sight; then to the first. */
  bringIntoSight(boxes: Rectangle[]): void {
    const view = this.sight();
    if (boxes.length === 0 || boxes.some((box) => overlaps(view, box))) return;
    const { width, height } = this.size;
    const [x0, y0, x1, y1] = boxes[0];
    this.untouched = null;
    this.moveTo(width / 2 - ((x0 + x1) / 2) * this.zoom, height / 2 - ((y0 + y1) / 2) * this.zoom, this.zoom);
  }

  /** As much around it as is worth to be drawn, so that small moves need no new elements. */
  get ahead(): Rectangle {
    return this.sight(AHEAD);
  }

  /** Moves the drawing up or down by pixels. */
  shift(dy: number): void {
    this.untouched = null;
    this.moveTo(this.x, this.y + dy, this.zoom);
  }

  private zoomAt(px: number, py: number, factor: number): void {
    const zoom = Math.min(3, Math.max(0.02, this.zoom * factor));
    const scale = zoom / this.zoom;
    this.untouched = null;
    this.moveTo(px - (px - this.x) * scale, py - (py - this.y) * scale, zoom);
  }

  private resized(): void {
    this.measured = null;
    if (this.untouched === "fit") this.fit();
    else if (this.untouched === "open") this.open(this.focus, this.boxes);
    else this.settle();
  }

  private listen(): void {
    let from: { px: number; py: number; x: number; y: number; moved: boolean } | null = null;
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      from = { px: event.clientX, py: event.clientY, x: this.x, y: this.y, moved: false };
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const [dx, dy] = [event.clientX - from.px, event.clientY - from.py];
      if (!from.moved && Math.hypot(dx, dy) < 4) return;
      if (!from.moved) this.svg.setPointerCapture(event.pointerId);
      from.moved = true;
      this.untouched = null;
      this.svg.classList.add("panning");
      this.isMoving = true;
      this.moveTo(from.x + dx, from.y + dy, this.zoom);
    });
    const stop = (event: PointerEvent): void => {
      this.svg.classList.remove("panning");
      this.stopMoving();
      const click = from !== null && !from.moved;
      from = null;
      if (click && event.type === "pointerup") this.hooks.clicked(event);
    };
    this.svg.addEventListener("pointerup", stop);
    this.svg.addEventListener("pointercancel", stop);
    this.canvas.addEventListener(
      "wheel",
      (event) => {
        if (event.target !== this.canvas && !this.svg.contains(event.target as Node)) return; // a card over it scrolls
        // a plain wheel scrolls a notebook; on a page of its own there is nothing to scroll
        const root = this.svg.closest(".tinyexplore");
        if (!event.ctrlKey && !event.metaKey && !root?.matches("[data-page]")) return;
        event.preventDefault();
        const { left, top } = this.canvas.getBoundingClientRect();
        this.isMoving = true;
        clearTimeout(this.rest);
        this.rest = setTimeout(() => this.stopMoving(), REST_MS);
        this.zoomAt(event.clientX - left, event.clientY - top, Math.exp(-event.deltaY * 0.0016));
      },
      { passive: false },
    );
    const jump = (event: PointerEvent): void => {
      if (event.buttons !== 1) return;
      const { left, top, width: w, height: hh } = this.minimap.getBoundingClientRect();
      const { width, height } = this.size;
      const wx = this.bounds.left + ((event.clientX - left) / w) * this.bounds.width;
      const wy = this.bounds.top + ((event.clientY - top) / hh) * this.bounds.height;
      this.untouched = null;
      this.moveTo(width / 2 - wx * this.zoom, height / 2 - wy * this.zoom, this.zoom);
    };
    this.minimap.addEventListener("pointerdown", jump);
    this.minimap.addEventListener("pointermove", jump);
  }

  private drawView(): void {
    const view = this.minimap.querySelector(".view");
    if (view === null) return;
    const { left, top, width, height } = this.bounds;
    const [x0, y0, x1, y1] = this.sight();
    view.setAttribute("x", String(Math.max(left, x0)));
    view.setAttribute("y", String(Math.max(top, y0)));
    view.setAttribute("width", String(Math.max(0, Math.min(left + width, x1) - Math.max(left, x0))));
    view.setAttribute("height", String(Math.max(0, Math.min(top + height, y1) - Math.max(top, y0))));
    const whole = x0 <= left && y0 <= top && x1 >= left + width && y1 >= top + height;
    this.minimap.style.visibility = whole ? "hidden" : "";
  }
}

/** The middle of the span, of that width at most, in which most boxes are whole; of all boxes where they fit. */
export function middleOfMost(boxes: readonly Rectangle[], width: number): number | null {
  let best = { count: 0, middle: 0 };
  for (const [from] of boxes) {
    const within = boxes.filter(([left, , right]) => left >= from && right <= from + width);
    const to = Math.max(...within.map(([, , right]) => right));
    if (within.length > best.count) best = { count: within.length, middle: (from + to) / 2 };
  }
  return best.count === 0 ? null : best.middle;
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, Math.min(low, high)), Math.max(low, high));
}

export function isWithin(inner: Rectangle, outer: Rectangle): boolean {
  return inner[0] >= outer[0] && inner[1] >= outer[1] && inner[2] <= outer[2] && inner[3] <= outer[3];
}

export function overlaps(a: Rectangle, b: Rectangle): boolean {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}
