// The memory positions of a shape's elements. Mirrors tinyexplore/explore/analysis/shapes/cells.py;
// tests/fixtures/shapes compares both.

import type { ShapeStepData } from "./requests";

/** Shape, strides, offset, mask (start and stop of each axis; null if every element is valid). */
export type ViewData = ShapeStepData["views"][number];
export type CellRange = [number, number][];

export interface Cell {
  index: number[];
  /** null in the padding. */
  offset: number | null;
}

const MOST_CELLS = 256;
const MOST_COLUMNS = 16;
const MOST_ROWS = 16;

/** Returns the memory position of an element, null in the padding. The first view accesses memory. */
export function offsetOf(views: ViewData[], index: number[]): number | null {
  let coords = index;
  let position = 0;
  for (let viewIndex = views.length - 1; viewIndex >= 0; viewIndex -= 1) {
    const [shape, strides, offset, mask] = views[viewIndex];
    if (viewIndex < views.length - 1) coords = computeCoordinates(position, shape);
    if (mask !== null && coords.some((i, axis) => i < mask[axis][0] || i >= mask[axis][1])) return null;
    position = coords.reduce((sum, i, axis) => sum + i * strides[axis], offset);
  }
  return position;
}

/** Returns the coordinates of a row-major position in `shape`. */
function computeCoordinates(position: number, shape: number[]): number[] {
  const coords = shape.map(() => 0);
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    coords[axis] = position % shape[axis];
    position = Math.floor(position / shape[axis]);
  }
  return coords;
}

/** Returns the part to draw from `first` on: columns, rows, and as many planes as fit. */
export function chooseBox(shape: number[], first: number[] = []): CellRange {
  let left = MOST_CELLS;
  const box: CellRange = [];
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const depth = shape.length - 1 - axis;
    const limit = depth === 0 ? MOST_COLUMNS : depth === 1 ? MOST_ROWS : left;
    const count = Math.max(Math.min(shape[axis], limit, left), shape[axis] > 0 ? 1 : 0);
    const start = Math.max(0, Math.min(first[axis] ?? 0, shape[axis] - count));
    box.unshift([start, start + count]);
    left = Math.floor(left / Math.max(count, 1));
  }
  return box;
}

/** Returns the elements in a box, in row-major order. */
export function cellsOf(views: ViewData[], box: CellRange): Cell[] {
  let indices: number[][] = [[]];
  for (const [start, stop] of box) {
    const range = Array.from({ length: stop - start }, (_, i) => start + i);
    indices = indices.flatMap((index) => range.map((i) => [...index, i]));
  }
  return indices.map((index) => ({ index, offset: offsetOf(views, index) }));
}

/**
 * Returns the number of positions in a drawn row: the last axis of the first contiguous shape with rows, if it fits.
 */
export function memoryWidth(steps: ShapeStepData[]): number {
  for (const { shape, views } of steps) {
    if (shape.filter((size) => size > 1).length < 2 || !isContiguous(views)) continue;
    const last = shape.at(-1)!;
    return last > 1 && last <= MOST_COLUMNS ? last : MOST_ROWS;
  }
  return MOST_ROWS;
}

function isContiguous(views: ViewData[]): boolean {
  if (views.length > 1) return false;
  const [[shape, strides, offset, mask]] = views;
  if (offset !== 0 || mask !== null) return false;
  let step = 1;
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    if (shape[axis] !== 1 && strides[axis] !== step) return false;
    step *= shape[axis];
  }
  return true;
}

/** Returns the drawn positions: some hundred, from the row of `first` on. */
export function memoryWindow(size: number, width: number, first: number): [number, number] {
  const limit = Math.floor(MOST_CELLS / width) * width;
  const rows = Math.ceil(size / width);
  const start = Math.max(0, Math.min(Math.floor(first / width), rows - limit / width)) * width;
  return [start, Math.min(size, start + limit)];
}

/** Returns a shape as text: "3×4"; "scalar" for no axes. */
export function sizesText(shape: number[]): string {
  return shape.join("×") || "scalar";
}

/** Returns a view as text. */
export function viewText([shape, strides, offset, mask]: ViewData): string {
  const masked = mask === null ? "" : `, valid in ${mask.map(([start, stop]) => `${start}:${stop}`).join("×")}`;
  return `${sizesText(shape)}, strides (${strides.join(", ")})${offset === 0 ? "" : `, offset ${offset}`}${masked}`;
}
