// A bar between two parts, to drag or to move by arrow keys; it sets a CSS variable in percent or pixels.

import { h } from "./dom";

interface Range {
  label: string;
  orientation: string;
  unit: string;
  low: number;
  high: number;
  start: number;
  step: number;
}

const RANGES: Record<"x" | "y", Range> = {
  x: { label: "Width of the graph", orientation: "vertical", unit: "%", low: 20, high: 80, start: 50, step: 2 },
  y: {
    label: "Height of the lower panel",
    orientation: "horizontal",
    unit: "px",
    low: 90,
    high: 900,
    start: 246,
    step: 16,
  },
};

const MOST_LOW = 0.78; // of the height, for the lower part: what stands above it is still there

/** `variable`: which one is set now. */
export function divider(root: HTMLElement, variable: () => string, axis: "x" | "y"): HTMLElement {
  const { label, orientation, unit, low, high, start, step } = RANGES[axis];
  const bar = h("div", {
    class: `divider ${axis}`,
    role: "separator",
    tabindex: 0,
    "aria-label": label,
    "aria-orientation": orientation,
    "aria-valuemin": low,
    "aria-valuemax": high,
    "aria-valuenow": start,
  });
  const set = (value: number, most = high): void => {
    const next = Math.round(Math.min(most, high, Math.max(low, value)));
    root.style.setProperty(variable(), `${next}${unit}`);
    bar.setAttribute("aria-valuenow", String(next));
  };
  const place = (event: PointerEvent): void => {
    const box = root.getBoundingClientRect();
    if (axis === "x") set(((event.clientX - box.left) / box.width) * 100);
    else set(box.bottom - event.clientY - 27, box.height * MOST_LOW);
  };
  const now = (): number => {
    const set = parseFloat(root.style.getPropertyValue(variable()));
    return set || (axis === "y" ? (bar.nextElementSibling as HTMLElement).offsetHeight : start);
  };
  bar.addEventListener("focus", () => bar.setAttribute("aria-valuenow", String(now())));
  bar.addEventListener("pointerdown", (event) => bar.setPointerCapture(event.pointerId));
  bar.addEventListener("pointermove", (event) => {
    if (bar.hasPointerCapture(event.pointerId)) place(event);
  });
  bar.addEventListener("dblclick", () => {
    root.style.removeProperty(variable());
    bar.setAttribute("aria-valuenow", String(now()));
  });
  bar.addEventListener("keydown", (event) => {
    const sign = { ArrowLeft: -1, ArrowUp: 1, ArrowRight: 1, ArrowDown: -1 }[event.key];
    if (sign === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    set(now() + sign * step, axis === "y" ? root.clientHeight * MOST_LOW : high);
  });
  return bar;
}
