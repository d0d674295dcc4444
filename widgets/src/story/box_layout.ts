// Places boxes from left to right by their inputs, in as many rows of columns as the canvas needs.

export interface Room {
  width: number;
  height: number;
}

export interface Size {
  w: number;
  h: number;
  /** The gap between columns and between boxes of a column. */
  gapX: number;
  gapY: number;
}

export interface Placed {
  size: Size;
  /** The centers, by position in the list. */
  centers: readonly (readonly [x: number, y: number])[];
}

/** Returns the column of each node: after all its inputs; a node without inputs directly before its first reader. */
export function columnsOf(sources: readonly (readonly number[])[]): number[] {
  const column = sources.map(() => 0);
  sources.forEach((src, i) => {
    for (const from of src) column[i] = Math.max(column[i], column[from] + 1);
  });
  const first = sources.map(() => Number.POSITIVE_INFINITY);
  sources.forEach((src, i) => {
    for (const from of src) first[from] = Math.min(first[from], column[i]);
  });
  return column.map((ownColumn, i) =>
    sources[i].length === 0 && Number.isFinite(first[i]) ? first[i] - 1 : ownColumn,
  );
}

/** Returns the order in each column: by the mean position of a node's inputs and readers. */
function orderColumns(sources: readonly (readonly number[])[], columns: readonly number[]): number[][] {
  const last = Math.max(-1, ...columns);
  const lists: number[][] = Array.from({ length: last + 1 }, () => []);
  columns.forEach((column, i) => lists[column].push(i));
  const positions = new Map<number, number>();
  const settle = (): void =>
    lists.forEach((list) => list.forEach((i, row) => positions.set(i, row - (list.length - 1) / 2)));
  const users = sources.map((): number[] => []);
  sources.forEach((src, i) => {
    for (const from of src) users[from].push(i);
  });
  settle();
  for (let round = 0; round < 4; round += 1) {
    const near = round % 2 === 0 ? sources : users;
    for (const list of lists) {
      const middle = (i: number): number => {
        const others = near[i];
        if (others.length === 0) return positions.get(i)!;
        return others.reduce((sum, other) => sum + positions.get(other)!, 0) / others.length;
      };
      const keys = new Map(list.map((i) => [i, middle(i)]));
      list.sort((a, b) => keys.get(a)! - keys.get(b)! || a - b);
    }
    settle();
  }
  return lists;
}

/** Returns the height that the boxes need from the top of the canvas. */
export function heightOf({ size, centers }: Placed): number {
  return Math.max(0, ...centers.map(([, y]) => y + size.h / 2)) + size.gapY;
}

/**
 * Returns the centers of the boxes, or null if the room is too small for this size. With infinite height the boxes are
 * at the top.
 */
export function placeBoxes(
  sources: readonly (readonly number[])[],
  room: Room,
  size: Size,
  mostRows = Number.POSITIVE_INFINITY,
): Placed | null {
  const lists = orderColumns(sources, columnsOf(sources));
  const columnLimit = Math.floor((room.width + size.gapX) / (size.w + size.gapX));
  if (columnLimit < 1 || lists.length === 0) return null;
  const rows = Math.ceil(lists.length / columnLimit);
  if (rows > mostRows) return null;
  const perRow = Math.ceil(lists.length / rows);
  const bands = Array.from({ length: rows }, (_, k) => lists.slice(k * perRow, (k + 1) * perRow));
  const heights = bands.map((band) => Math.max(...band.map((list) => list.length)) * (size.h + size.gapY));
  const total = heights.reduce((sum, value) => sum + value, 0);
  if (total > room.height + size.gapY) return null;
  const spare = Number.isFinite(room.height) ? (room.height + size.gapY - total) / (rows + 1) : size.gapY;
  const centers: [number, number][] = sources.map(() => [0, 0]);
  const step = perRow < 2 ? 0 : Math.min((room.width - size.w) / (perRow - 1), size.w * 2.1);
  const left = (room.width - step * (perRow - 1)) / 2;
  let top = spare;
  bands.forEach((band, k) => {
    const middle = top + (heights[k] - size.gapY) / 2;
    const grow = Math.min(1.5, 1 + spare / heights[k]);
    band.forEach((list, column) =>
      list.forEach((i, row) => {
        const y = middle + (row - (list.length - 1) / 2) * (size.h + size.gapY) * grow;
        centers[i] = [left + column * step, y];
      }),
    );
    top += heights[k] + spare;
  });
  return { size, centers };
}

/**
 * Returns the placement with the largest boxes that fit, in one row of columns if possible; null if the smallest do
 * not fit.
 */
export function fitBoxes(sources: readonly (readonly number[])[], room: Room, sizes: readonly Size[]): Placed | null {
  for (const rows of [1, Number.POSITIVE_INFINITY]) {
    for (const size of sizes) {
      const placement = placeBoxes(sources, room, size, rows);
      if (placement !== null) return placement;
    }
  }
  return null;
}
