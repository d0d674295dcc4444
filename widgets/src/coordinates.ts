// Places the vertices of a layered graph: x by sweeps of isotonic regression, y by rank, components side by side.
// Mirrors tinyexplore/explore/tracefile/pictures/coordinates.py.

import { itemAt, NODE_GAP, widthOf, type Layers, type Point } from "./layers";

const RANK_GAP = 38;
const COMPONENT_GAP = 44;
const PLACE_SWEEPS = 8;
const PINNED_WEIGHT = 1024;
const FREE_WEIGHT = 0.01;

/** The extent of one connected component, and the change of its boxes' previous height (null: all are new). */
export interface ComponentBounds {
  vertices: number[];
  left: number;
  right: number;
  top: number;
  bottom: number;
  shift: number | null;
}

/** Computes x by sweeps of isotonic regression that move every vertex towards the mean of its neighbors. */
export function placeX(
  layers: Layers,
  rows: readonly number[][],
  pinned: readonly (number | null)[],
  x: number[],
  cancelled: () => boolean,
): void {
  const count = layers.boxes.length;
  const hasPinned = rows.some((row) => row.some((v) => v < count && itemAt(pinned, v) !== null));
  packRows(layers, rows, x);
  if (hasPinned) {
    for (const row of rows) for (const v of row) x[v] = (v < count ? itemAt(pinned, v) : null) ?? itemAt(x, v);
  }
  for (let sweep = 0; sweep < PLACE_SWEEPS + 2 && !cancelled(); sweep++) {
    const downwards = sweep % 2 === 0;
    const both = sweep >= PLACE_SWEEPS;
    for (let i = 0; i < rows.length; i++) {
      const row = itemAt(rows, downwards ? i : rows.length - 1 - i);
      const targets: number[] = [];
      const weights: number[] = [];
      for (const v of row) {
        const pinnedAt = v < count ? itemAt(pinned, v) : null;
        if (pinnedAt !== null) {
          targets.push(pinnedAt);
          weights.push(PINNED_WEIGHT);
          continue;
        }
        let sum = 0;
        let weight = 0;
        if (downwards || both) {
          const ends = itemAt(layers.up, v).length === 1;
          for (const u of itemAt(layers.up, v)) {
            const pull = pullOf(v >= count, u >= count, ends && itemAt(layers.down, u).length === 1);
            sum += pull * itemAt(x, u);
            weight += pull;
          }
        }
        if (!downwards || both) {
          const ends = itemAt(layers.down, v).length === 1;
          for (const u of itemAt(layers.down, v)) {
            const pull = pullOf(v >= count, u >= count, ends && itemAt(layers.up, u).length === 1);
            sum += pull * itemAt(x, u);
            weight += pull;
          }
        }
        targets.push(weight > 0 ? sum / weight : itemAt(x, v));
        weights.push(weight > 0 ? weight : FREE_WEIGHT);
      }
      placeRow(layers, row, targets, weights, x);
    }
  }
}

/** Returns the weight of a neighbor. Chains and long edges have the largest weights, which keeps them straight. */
function pullOf(isDummy: boolean, otherIsDummy: boolean, isChain: boolean): number {
  if (isChain || (isDummy && otherIsDummy)) return 8;
  return isDummy || otherIsDummy ? 2 : 1;
}

/** Returns the smallest distance of the centers of two neighbors in a row. */
function computeSeparation(layers: Layers, a: number, b: number): number {
  const count = layers.boxes.length;
  const gap = a < count && b < count ? NODE_GAP : layers.dummyGap;
  return (widthOf(layers, a) + widthOf(layers, b)) / 2 + gap;
}

/** Places the vertices of each row side by side, with all rows centered on one axis: the start of the sweeps. */
function packRows(layers: Layers, rows: readonly number[][], x: number[]): void {
  for (const row of rows) {
    let place = 0;
    row.forEach((v, i) => {
      if (i > 0) place += computeSeparation(layers, itemAt(row, i - 1), v);
      x[v] = place;
    });
    for (const v of row) x[v] = itemAt(x, v) - place / 2;
  }
}

/** Places one row as near to `wanted` as possible (weighted least squares), with all distances respected. */
function placeRow(
  layers: Layers,
  row: readonly number[],
  wanted: readonly number[],
  weights: readonly number[],
  x: number[],
): void {
  const offsets: number[] = [];
  const blockWeight: number[] = [];
  const blockSum: number[] = [];
  const blockMean: number[] = [];
  const blockSize: number[] = [];
  let offset = 0;
  for (let i = 0; i < row.length; i++) {
    if (i > 0) offset += computeSeparation(layers, itemAt(row, i - 1), itemAt(row, i));
    offsets.push(offset);
    let weight = itemAt(weights, i);
    let sum = weight * (itemAt(wanted, i) - offset);
    let mean = itemAt(wanted, i) - offset;
    let size = 1;
    while (blockMean.length > 0 && itemAt(blockMean, blockMean.length - 1) > mean) {
      weight += blockWeight.pop() as number;
      sum += blockSum.pop() as number;
      size += blockSize.pop() as number;
      blockMean.pop();
      mean = sum / weight;
    }
    blockWeight.push(weight);
    blockSum.push(sum);
    blockMean.push(mean);
    blockSize.push(size);
  }
  let i = 0;
  for (let block = 0; block < blockMean.length; block++) {
    for (let k = 0; k < itemAt(blockSize, block); k++) {
      x[itemAt(row, i)] = itemAt(blockMean, block) + itemAt(offsets, i);
      i++;
    }
  }
}

export function placeY(layers: Layers, rows: readonly number[][], y: number[], top: number[], bottom: number[]): void {
  let start = 0;
  for (const row of rows) {
    let tallest = 0;
    for (const v of row) if (v < layers.boxes.length) tallest = Math.max(tallest, itemAt(layers.boxes, v).height);
    for (const v of row) {
      y[v] = start + tallest / 2;
      top[v] = start;
      bottom[v] = start + tallest;
    }
    start += tallest + RANK_GAP;
  }
}

export function findBounds(
  layers: Layers,
  rows: readonly number[][],
  x: readonly number[],
  y: readonly number[],
  bottom: readonly number[],
  previous: ReadonlyMap<number, Point>,
): ComponentBounds {
  const vertices: number[] = [];
  const shifts: number[] = [];
  let left = Infinity;
  let right = -Infinity;
  let lowest = 0;
  for (const row of rows) {
    for (const v of row) {
      const half = widthOf(layers, v) / 2;
      vertices.push(v);
      left = Math.min(left, itemAt(x, v) - half);
      right = Math.max(right, itemAt(x, v) + half);
      lowest = Math.max(lowest, itemAt(bottom, v));
      const box = layers.boxes[v];
      const position = box === undefined ? undefined : previous.get(box.id);
      if (position !== undefined) shifts.push(position.y - itemAt(y, v));
    }
  }
  shifts.sort((a, b) => a - b);
  const shift = shifts.length > 0 ? itemAt(shifts, Math.floor(shifts.length / 2)) : null;
  return { vertices, left, right, top: 0, bottom: lowest, shift };
}

/** Places components. Previous ones keep their position, except for overlaps; new ones go on shelves below. */
export function arrangeComponents(
  frames: readonly ComponentBounds[],
  x: number[],
  y: number[],
  top: number[],
  bottom: number[],
): void {
  const move = (frame: ComponentBounds, dx: number, dy: number): void => {
    for (const v of frame.vertices) {
      x[v] = itemAt(x, v) + dx;
      y[v] = itemAt(y, v) + dy;
      top[v] = itemAt(top, v) + dy;
      bottom[v] = itemAt(bottom, v) + dy;
    }
    frame.left += dx;
    frame.right += dx;
    frame.top += dy;
    frame.bottom += dy;
  };
  const placed: ComponentBounds[] = [];
  const stood = frames.filter((frame) => frame.shift !== null).sort((a, b) => a.left - b.left);
  for (const frame of stood) {
    move(frame, 0, frame.shift as number);
    for (const other of placed) {
      if (frame.top >= other.bottom || other.top >= frame.bottom || frame.left >= other.right) continue;
      if (other.left < frame.right) move(frame, other.right + COMPONENT_GAP - frame.left, 0);
    }
    placed.push(frame);
    placed.sort((a, b) => a.left - b.left);
  }
  let shelfLeft = 0;
  let shelfTop = 0;
  placed.forEach((frame, i) => {
    shelfLeft = i === 0 ? frame.left : Math.min(shelfLeft, frame.left);
    shelfTop = i === 0 ? frame.bottom + COMPONENT_GAP : Math.max(shelfTop, frame.bottom + COMPONENT_GAP);
  });
  const fresh = frames.filter((frame) => frame.shift === null).sort((a, b) => b.bottom - a.bottom);
  let widest = 0;
  let area = 0;
  for (const frame of fresh) {
    const width = frame.right - frame.left;
    widest = Math.max(widest, width);
    area += (width + COMPONENT_GAP) * (frame.bottom + COMPONENT_GAP);
  }
  const shelfWidth = Math.max(widest, 1.4 * Math.sqrt(area));
  let left = shelfLeft;
  let shelfHeight = 0;
  for (const frame of fresh) {
    const width = frame.right - frame.left;
    if (left > shelfLeft && left + width > shelfLeft + shelfWidth) {
      left = shelfLeft;
      shelfTop += shelfHeight + COMPONENT_GAP;
      shelfHeight = 0;
    }
    shelfHeight = Math.max(shelfHeight, frame.bottom);
    move(frame, left - frame.left, shelfTop);
    left += width + COMPONENT_GAP;
  }
}
