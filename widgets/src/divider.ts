// A bar between two parts that the pointer or arrow keys move; it sets a CSS variable in percent or pixels.

import { h } from "./dom";

const STORAGE_KEY = "tinyexplore.sizes"; // key in the browser's storage: the sizes that the user chose last

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

const MOST_LOW = 0.78; // largest share of the height for the lower part, so that the upper part stays visible

/** Restores the sizes that the user chose last. */
export function applySizes(root: HTMLElement): void {
  for (const [variable, size] of Object.entries(readSizes()))
    if (/^--(split|low|low-roomy)$/.test(variable) && /^\d+(px|%)$/.test(size)) root.style.setProperty(variable, size);
}

function saveSize(variable: string, size: string | null): void {
  const sizes = readSizes();
  if (size === null) delete sizes[variable];
  else sizes[variable] = size;
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(sizes));
  } catch {
    // without storage, the sizes are not remembered
  }
}

function readSizes(): Record<string, string> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
    return typeof stored === "object" && stored !== null ? (stored as Record<string, string>) : {};
  } catch {
    return {}; // a page from a file, or a notebook in a frame, may have no storage
  }
}

/** `variable`: returns the name of the variable to set. */
export function makeDivider(root: HTMLElement, variable: () => string, axis: "x" | "y"): HTMLElement {
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
  const set = (value: number, largest = high): void => {
    const next = Math.round(Math.min(largest, high, Math.max(low, value)));
    root.style.setProperty(variable(), `${next}${unit}`);
    saveSize(variable(), `${next}${unit}`);
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
    saveSize(variable(), null);
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
