// The camera of a drawing: pan, zoom, fit, the first view of a graph, and the minimap; independent of the content.

import { oncePerFrame, s } from "../dom";
import type { Flow } from "../layout_direction";

export type Rectangle = [left: number, top: number, right: number, bottom: number];

interface Bounds {
  left: number;
  top: number;
  width: number;
  height: number;
}

interface Hooks {
  /** Called after every move, once per frame. */
  moved: () => void;
  clicked: (event: MouseEvent) => void;
  /**
   * Called when the room for the drawing and its surroundings changes; returns true if it redraws. `isUntouched`:
   * whether the user has not moved the camera.
   */
  resized: (isUntouched: boolean) => boolean;
}

const MARGIN = 18;
const EDGE = 4; // pixels that stay free beside a box at the edge of the first view
/** The smallest zoom at which a graph opens: its smallest text is 11 pixels high. */
export const LEGIBLE = 1;
const CLOSEST = 1.1;
const TALL_MAP = [64, 150];
const WIDE_MAP = [160, 30];
const SMALL = 0.55; // zoom below which edges show no numbers
const REST_MS = 140; // pause of the wheel after which the drawing is rendered at its new size
const MOST_STRETCHED = 1.6; // largest scale of the old rendering until then
const AHEAD = 300; // pixels around the visible part that are rendered too

export class Camera {
  readonly minimap = s("svg", { class: "minimap", "aria-hidden": "true" });
  zoom = 1;
  private x = 0;
  private y = 0;
  private flow: Flow = "down";
  private bounds: Bounds = { left: 0, top: 0, width: 0, height: 0 };
  private focus: Rectangle | null = null;
  private boxes: readonly Rectangle[] = [];
  private measured: { clientWidth: number; clientHeight: number } | null = null; // the canvas, until its size changes
  private isUntouched = false; // a new size resets the view until the user pans or zooms
  private readonly sizes: ResizeObserver;
  // where the elements were rendered; the browser moves the rendering from there
  private drawnAt = { x: 0, y: 0, zoom: 1 };
  private isMoving = false; // whether the user is dragging
  private rest: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly svg: SVGSVGElement,
    private readonly world: SVGGElement,
    private readonly canvas: HTMLElement,
    room: HTMLElement, // the canvas and its surroundings
    private readonly hooks: Hooks,
  ) {
    this.listen();
    this.sizes = new ResizeObserver((entries) => this.onResize(entries.some(({ target }) => target === room)));
    this.sizes.observe(canvas);
    this.sizes.observe(room);
  }

  destroy(): void {
    clearTimeout(this.rest);
    this.sizes.disconnect();
  }

  /** Sets the bounds and the direction of the drawing; the minimap shows `pieces`, elements in the drawing's units. */
  cover({ left, top, width, height }: Bounds, pieces: SVGElement[], flow: Flow): void {
    this.bounds = { left, top, width, height };
    this.flow = flow;
    this.minimap.style.display = pieces.length === 0 ? "none" : "";
    const [broad, high] = this.isTall ? TALL_MAP : WIDE_MAP;
    const scale = Math.min(broad / Math.max(1, width), high / Math.max(1, height));
    this.minimap.style.width = `${Math.max(20, width * scale)}px`;
    this.minimap.style.height = `${Math.max(14, height * scale)}px`;
    this.minimap.setAttribute("viewBox", `${left} ${top} ${Math.max(1, width)} ${Math.max(1, height)}`);
    this.minimap.replaceChildren(...pieces, s("rect", { class: "view" }));
    this.drawView();
  }

  /** Whether the drawing, and its minimap, is higher than wide. */
  get isTall(): boolean {
    return this.bounds.height > this.bounds.width;
  }

  /** Read at every step, so measured only after a change: a measurement forces the browser to lay out the page. */
  private get size(): { width: number; height: number } {
    const { clientWidth: width, clientHeight: height } = this.measured ?? this.canvas;
    if (this.measured === null && width > 0 && height > 0) this.measured = { clientWidth: width, clientHeight: height };
    return { width: width || 600, height: height || 380 };
  }

  /** Returns the zoom at which a drawing of this size fits. */
  zoomFor({ width, height }: { width: number; height: number }): number {
    const { width: broad, height: high } = this.size;
    const across = (broad - 2 * MARGIN) / Math.max(1, width);
    const down = (high - 2 * MARGIN) / Math.max(1, height);
    return Math.max(0.02, Math.min(CLOSEST, across, down));
  }

  /**
   * Shows the whole graph if it is legible, else the part around `focus`, or the beginning with most `boxes`. Text is
   * never smaller than 11 pixels.
   */
  open(focus: Rectangle | null, boxes: readonly Rectangle[] = []): void {
    [this.focus, this.boxes, this.isUntouched] = [focus, boxes, true];
    const { width, height } = this.size;
    const { left, top } = this.bounds;
    const zoom = Math.max(LEGIBLE, this.zoomFor(this.bounds));
    const [wide, high] = [this.bounds.width * zoom, this.bounds.height * zoom];
    const first = focus ?? this.findBeginning(boxes);
    const along = (size: number, room: number, from: number, near: number, far: number): number =>
      size <= room - 2 * MARGIN
        ? room / 2 - from * zoom - size / 2
        : clamp(
            (far - near) * zoom <= room - 2 * MARGIN ? room / 2 - ((near + far) / 2) * zoom : MARGIN - near * zoom,
            room - MARGIN - from * zoom - size,
            MARGIN - from * zoom,
          ); // for a drawing larger than the room, its beginning with the title
    const [x0, y0, x1, y1] = first;
    this.moveTo(along(wide, width, left, x0, x1), along(high, height, top, y0, y1), zoom);
  }

  /** Returns the beginning of the drawing: the part with most boxes that are visible first. */
  private findBeginning(boxes: readonly Rectangle[]): Rectangle {
    const { width, height } = this.size;
    const { left, top } = this.bounds;
    const isDown = this.flow === "down";
    const room = (isDown ? height : width) / LEGIBLE - 2 * MARGIN;
    const first = boxes.filter((box) => box[isDown ? 1 : 0] - (isDown ? top : left) < room);
    const across = first.map(([x0, y0, x1, y1]): Rectangle => (isDown ? [x0, y0, x1, y1] : [y0, x0, y1, x1]));
    const middle = findMiddle(across, ((isDown ? width : height) - 2 * EDGE) / LEGIBLE);
    const focus = middle ?? (isDown ? left + this.bounds.width / 2 : top + this.bounds.height / 2);
    return isDown ? [focus, top, focus, top] : [left, focus, left, focus];
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

  /** Renders the drawing at the camera's position, which takes time proportional to the elements. */
  private drawHere(): void {
    const { x, y, zoom } = this;
    this.drawnAt = { x, y, zoom };
    this.svg.style.transform = "";
    this.world.setAttribute("transform", `translate(${x.toFixed(2)} ${y.toFixed(2)}) scale(${zoom.toFixed(4)})`);
  }

  /** Ends dragging. */
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

  /** Returns the visible part of the world, extended by `margin` pixels. */
  visibleArea(margin = 0): Rectangle {
    const { width, height } = this.size;
    const { x, y, zoom } = this;
    return [(-x - margin) / zoom, (-y - margin) / zoom, (width - x + margin) / zoom, (height - y + margin) / zoom];
  }

  /** Keeps the position of the drawing when the room changes. */
  keepPosition(): void {
    this.isUntouched = false;
  }

  /** Moves to the first box if none of the boxes is visible. */
  bringIntoView(boxes: Rectangle[]): void {
    const view = this.visibleArea();
    if (boxes.length === 0 || boxes.some((box) => overlaps(view, box))) return;
    const { width, height } = this.size;
    const [x0, y0, x1, y1] = boxes[0];
    this.isUntouched = false;
    this.moveTo(width / 2 - ((x0 + x1) / 2) * this.zoom, height / 2 - ((y0 + y1) / 2) * this.zoom, this.zoom);
  }

  /** Moves as little as needed to show a whole box; the room is measured again before. */
  reveal([x0, y0, x1, y1]: Rectangle): void {
    this.measured = null;
    const { width, height } = this.size;
    const { zoom } = this;
    const along = (position: number, low: number, high: number, room: number): number =>
      clamp(position, MARGIN - low * zoom, room - MARGIN - high * zoom);
    const [x, y] = [along(this.x, x0, x1, width), along(this.y, y0, y1, height)];
    if (x !== this.x || y !== this.y) this.moveTo(x, y, zoom);
  }

  get height(): number {
    return this.size.height;
  }

  /** The width of the canvas divided by its height. */
  get ratio(): number {
    return this.size.width / this.size.height;
  }

  /** The surroundings that are rendered too, so that small moves need no new elements. */
  get ahead(): Rectangle {
    return this.visibleArea(AHEAD);
  }

  private zoomAt(px: number, py: number, factor: number): void {
    const zoom = Math.min(3, Math.max(0.02, this.zoom * factor));
    const scale = zoom / this.zoom;
    this.isUntouched = false;
    this.moveTo(px - (px - this.x) * scale, py - (py - this.y) * scale, zoom);
  }

  /** `isRoom`: whether the whole room changed, not only the canvas. */
  private onResize(isRoom: boolean): void {
    this.measured = null;
    if (!isRoom) this.settle();
    else if (!this.hooks.resized(this.isUntouched)) {
      if (this.isUntouched) this.open(this.focus, this.boxes);
      else this.settle();
    }
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
      this.isUntouched = false;
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
        // a plain wheel scrolls a notebook; a page of its own does not scroll
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
      this.isUntouched = false;
      this.moveTo(width / 2 - wx * this.zoom, height / 2 - wy * this.zoom, this.zoom);
    };
    this.minimap.addEventListener("pointerdown", jump);
    this.minimap.addEventListener("pointermove", jump);
  }

  private drawView(): void {
    const view = this.minimap.querySelector(".view");
    if (view === null) return;
    const { left, top, width, height } = this.bounds;
    const [x0, y0, x1, y1] = this.visibleArea();
    view.setAttribute("x", String(Math.max(left, x0)));
    view.setAttribute("y", String(Math.max(top, y0)));
    view.setAttribute("width", String(Math.max(0, Math.min(left + width, x1) - Math.max(left, x0))));
    view.setAttribute("height", String(Math.max(0, Math.min(top + height, y1) - Math.max(top, y0))));
    const whole = x0 <= left && y0 <= top && x1 >= left + width && y1 >= top + height;
    this.minimap.classList.toggle("is-whole", whole);
  }
}

/** Returns the middle of the range of at most that width with the most whole boxes; of all boxes if they fit. */
export function findMiddle(boxes: readonly Rectangle[], width: number): number | null {
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
