// Routes the edges of a drawing: straight between boxes if nothing is between them, else around the boxes.

export interface Area {
  x: number;
  y: number;
  w: number;
  h: number;
}

interface Size {
  width: number;
  height: number;
}

type Point = readonly [x: number, y: number];

/** A route: its SVG path, the position of its label, and points along it for animation. */
export interface EdgePath {
  d: string;
  x: number;
  y: number;
  points: readonly Point[];
}

export const SAMPLES = 40; // points of a route
const CLEAR = 3; // pixels between a route and a box
const LANES = [5, 10, 16]; // distances of lanes from the sides of boxes
const BEND = 26; // cost of a corner, in pixels of length
const CORNER = 12; // radius of a corner
const SIDEWAYS = 40; // cost of leaving or entering a box above or below
const CROWDED = 60; // cost of sharing a lane with an unrelated route

/** The routes between boxes. `others`: further areas that routes should avoid. */
export class EdgeRouter {
  private grid: Grid | null = null;

  constructor(
    private readonly boxes: ReadonlyMap<string, Area>,
    private readonly others: readonly Area[] = [],
    /** The area of all routes. */
    private readonly room: Size = { width: Number.POSITIVE_INFINITY, height: Number.POSITIVE_INFINITY },
  ) {}

  /** Returns null if a box is missing. */
  route(from: string, to: string): EdgePath | null {
    const [a, b] = [this.boxes.get(from), this.boxes.get(to)];
    if (a === undefined || b === undefined) return null;
    const direct = drawCurve(a, b);
    const isHit = (box: Area): boolean =>
      box !== a && box !== b && direct.points.some((point) => isInside(point, box, 1));
    if (![...this.boxes.values(), ...this.others].some(isHit)) return direct;
    this.grid ??= new Grid([...this.boxes.values()], this.others, this.room);
    const corners = this.grid.findRoute(a, b, from, to);
    return corners === null ? direct : roundCorners(corners);
  }
}

function isInside([x, y]: Point, box: Area, clear: number): boolean {
  return Math.abs(x - box.x) < box.w / 2 + clear && Math.abs(y - box.y) < box.h / 2 + clear;
}

/** Returns a curve between the facing sides of two boxes. */
function drawCurve(from: Area, to: Area): EdgePath {
  const { x: ax, y: ay, w: aw, h: ah } = from;
  const { x: bx, y: by, w: bw, h: bh } = to;
  if (bx - bw / 2 > ax + aw / 2 + 6) {
    const [x1, x2] = [ax + aw / 2, bx - bw / 2 - 1];
    const m = Math.max(14, (x2 - x1) * 0.5);
    return drawBezier([x1, ay], [x1 + m, ay], [x2 - m, by], [x2, by], (x1 + x2) / 2, (ay + by) / 2 - 6);
  }
  if (Math.abs(by - ay) < (ah + bh) / 2) {
    const up = Math.min(ay - ah / 2, by - bh / 2) - 16;
    return drawBezier([ax, ay - ah / 2], [ax, up], [bx, up], [bx, by - bh / 2 - 1], (ax + bx) / 2, up);
  }
  const down = by > ay ? 1 : -1;
  const [y1, y2] = [ay + (down * ah) / 2, by - down * (bh / 2 + 1)];
  const m = Math.max(12, Math.abs(y2 - y1) * 0.5) * down;
  return drawBezier([ax, y1], [ax, y1 + m], [bx, y2 - m], [bx, y2], (ax + bx) / 2 + 4, (y1 + y2) / 2);
}

function drawBezier(a: Point, b: Point, c: Point, d: Point, x: number, y: number): EdgePath {
  const points = Array.from({ length: SAMPLES }, (_, i): Point => {
    const t = i / (SAMPLES - 1);
    const u = 1 - t;
    const coordinate = (k: 0 | 1): number =>
      u ** 3 * a[k] + 3 * u * u * t * b[k] + 3 * u * t * t * c[k] + t ** 3 * d[k];
    return [coordinate(0), coordinate(1)];
  });
  return { d: `M${pointText(a)}C${pointText(b)} ${pointText(c)} ${pointText(d)}`, x, y, points };
}

function pointText([x, y]: Point): string {
  return `${x.toFixed(1)} ${y.toFixed(1)}`;
}

/** A crossing beside a box, at which a route begins or ends. */
interface Port {
  side: Point;
  crossing: number;
  direction: 0 | 1;
  cost: number;
}

/** The lanes beside the boxes, and their free segments. */
class Grid {
  private readonly xs: readonly number[];
  private readonly ys: readonly number[];
  /** For each crossing, whether the segment to the next crossing, right (0) and down (1), is free. */
  private readonly free: readonly [Uint8Array, Uint8Array];
  /** For each segment, the ends of the routes on it. */
  private readonly used: readonly [Map<number, [string, string][]>, Map<number, [string, string][]>] = [
    new Map(),
    new Map(),
  ];

  constructor(boxes: readonly Area[], others: readonly Area[], room: Size) {
    const all = [...boxes, ...others];
    const lanes = (center: number, size: number): number[] =>
      LANES.flatMap((far) => [center - size / 2 - far, center + size / 2 + far]);
    const lines = (some: number[], most: number): number[] =>
      [...new Set(some.map((value) => Math.round(value * 2) / 2))]
        .filter((line) => line >= 1 && line <= most - 1)
        .sort((a, b) => a - b);
    this.xs = lines([...boxes.map(({ x }) => x), ...all.flatMap(({ x, w }) => lanes(x, w))], room.width);
    this.ys = lines([...boxes.map(({ y }) => y), ...all.flatMap(({ y, h }) => lanes(y, h))], room.height);
    const wide = this.xs.length;
    const size = wide * this.ys.length;
    this.free = [new Uint8Array(size).fill(1), new Uint8Array(size).fill(1)];
    for (const { x, y, w, h } of all) {
      const [left, right, top, bottom] = [x - w / 2 - CLEAR, x + w / 2 + CLEAR, y - h / 2 - CLEAR, y + h / 2 + CLEAR];
      this.ys.forEach((lane, j) =>
        this.xs.forEach((column, i) => {
          const [across, down] = [this.xs[i + 1] ?? column, this.ys[j + 1] ?? lane];
          if (lane > top && lane < bottom && across > left && column < right) this.free[0][j * wide + i] = 0;
          if (column > left && column < right && down > top && lane < bottom) this.free[1][j * wide + i] = 0;
        }),
      );
    }
  }

  /**
   * Returns the corners of the cheapest route, preferably from the right side of a box to the left side of the other;
   * null for none.
   */
  findRoute(from: Area, to: Area, source: string, target: string): Point[] | null {
    const starts = this.listPorts(from, 1);
    const ends = this.listPorts(to, -1);
    const route = this.findCheapest(starts, ends, source, target);
    if (route === null) return null;
    const [first, last] = [route[0], route[route.length - 1]];
    const side = (ports: readonly Port[], [x, y]: Point): Point =>
      ports.find(({ crossing }) => this.pointOf(crossing)[0] === x && this.pointOf(crossing)[1] === y)!.side;
    return straighten([side(starts, first), ...route, side(ends, last)]);
  }

  /**
   * Returns the points where a route may leave a box (1) or enter it (-1): on the side along the graph, below, above.
   */
  private listPorts({ x, y, w, h }: Area, along: 1 | -1): Port[] {
    const near = (lines: readonly number[], value: number): number =>
      lines.reduce((best, line, i) => (Math.abs(line - value) < Math.abs(lines[best] - value) ? i : best), 0);
    const gap = LANES[0];
    const all: [side: Point, out: Point, direction: 0 | 1, cost: number][] = [
      [[x + along * (w / 2 + (along < 0 ? 1 : 0)), y], [x + along * (w / 2 + gap), y], 0, 0],
      [[x, y + h / 2], [x, y + h / 2 + gap], 1, SIDEWAYS],
      [[x, y - h / 2], [x, y - h / 2 - gap], 1, SIDEWAYS],
    ];
    return all.flatMap(([side, out, direction, cost]) => {
      const crossing = near(this.ys, out[1]) * this.xs.length + near(this.xs, out[0]);
      const [px, py] = this.pointOf(crossing);
      if (Math.hypot(px - out[0], py - out[1]) > 1) return [];
      return [
        { side: direction === 0 ? ([side[0], py] as const) : ([px, side[1]] as const), crossing, direction, cost },
      ];
    });
  }

  /** Runs Dijkstra over the crossings of lanes; a state is a crossing and the direction of arrival. */
  private findCheapest(starts: readonly Port[], ends: readonly Port[], source: string, target: string): Point[] | null {
    const wide = this.xs.length;
    const cost = new Map<number, number>();
    const before = new Map<number, number>();
    const queue: [number, number][] = [];
    for (const port of starts) {
      cost.set(port.crossing * 2 + port.direction, port.cost);
      push(queue, [port.cost, port.crossing * 2 + port.direction]);
    }
    const goal = new Map(ends.map((port) => [port.crossing * 2 + port.direction, port.cost]));
    const done = new Set<number>();
    let best: [cost: number, state: number] | null = null;
    while (queue.length > 0) {
      const [sofar, state] = pop(queue);
      if (best !== null && sofar >= best[0]) break;
      if (done.has(state)) continue;
      done.add(state);
      const more = goal.get(state);
      if (more !== undefined && (best === null || sofar + more < best[0])) best = [sofar + more, state];
      const [crossing, direction] = [state >> 1, state & 1];
      for (const [next, piece, turn] of [
        [crossing + 1, crossing, 0],
        [crossing - 1, crossing - 1, 0],
        [crossing + wide, crossing, 1],
        [crossing - wide, crossing - wide, 1],
      ] as const) {
        if (piece < 0 || next >= wide * this.ys.length) continue;
        if (turn === 0 && Math.floor(next / wide) !== Math.floor(crossing / wide)) continue;
        if (this.free[turn][piece] === 0) continue;
        const [a, b] = [this.pointOf(crossing), this.pointOf(next)];
        const length = Math.abs(b[0] - a[0]) + Math.abs(b[1] - a[1]);
        const bend = turn === direction ? 0 : BEND;
        const total = sofar + length + bend + (this.isForeign(turn, piece, source, target) ? CROWDED : 0);
        const reached = next * 2 + turn;
        if (total >= (cost.get(reached) ?? Number.POSITIVE_INFINITY)) continue;
        cost.set(reached, total);
        before.set(reached, state);
        push(queue, [total, reached]);
      }
    }
    return best === null ? null : this.traceBack(best[1], before, source, target);
  }

  private pointOf(crossing: number): Point {
    return [this.xs[crossing % this.xs.length], this.ys[Math.floor(crossing / this.xs.length)]];
  }

  /** Whether a route without a common end uses this segment. */
  private isForeign(turn: 0 | 1, piece: number, source: string, target: string): boolean {
    return (this.used[turn].get(piece) ?? []).some(([a, b]) => a !== source && b !== target);
  }

  private traceBack(end: number, before: ReadonlyMap<number, number>, source: string, target: string): Point[] {
    const points: Point[] = [];
    let last: number | null = null;
    for (let state: number | undefined = end; state !== undefined; state = before.get(state)) {
      const crossing = state >> 1;
      points.unshift(this.pointOf(crossing));
      if (last !== null) {
        const turn = Math.abs(last - crossing) === 1 ? 0 : 1;
        const piece = Math.min(last, crossing);
        this.used[turn].set(piece, [...(this.used[turn].get(piece) ?? []), [source, target]]);
      }
      last = crossing;
    }
    return points;
  }
}

function push(queue: [number, number][], entry: [number, number]): void {
  queue.push(entry);
  for (let i = queue.length - 1; i > 0; ) {
    const up = (i - 1) >> 1;
    if (queue[up][0] <= queue[i][0]) return;
    [queue[up], queue[i]] = [queue[i], queue[up]];
    i = up;
  }
}

function pop(queue: [number, number][]): [number, number] {
  const [top] = queue;
  const last = queue.pop()!;
  if (queue.length === 0) return top;
  queue[0] = last;
  for (let i = 0; ; ) {
    let nearest = i;
    for (const child of [2 * i + 1, 2 * i + 2])
      if (child < queue.length && queue[child][0] < queue[nearest][0]) nearest = child;
    if (nearest === i) return top;
    [queue[i], queue[nearest]] = [queue[nearest], queue[i]];
    i = nearest;
  }
}

/** Removes the points in the middle of straight segments. */
function straighten(points: readonly Point[]): Point[] {
  return points.filter((point, i) => {
    const [a, b] = [points[i - 1], points[i + 1]];
    if (a === undefined || b === undefined) return true;
    return !(
      (Math.abs(a[0] - point[0]) < 0.01 && Math.abs(point[0] - b[0]) < 0.01) ||
      (Math.abs(a[1] - point[1]) < 0.01 && Math.abs(point[1] - b[1]) < 0.01)
    );
  });
}

/** Returns a route through corners, each rounded; the label is on the longest horizontal segment. */
function roundCorners(points: readonly Point[]): EdgePath {
  let d = `M${pointText(points[0])}`;
  const apart = (a: Point, b: Point): number => Math.hypot(b[0] - a[0], b[1] - a[1]);
  const towards = (a: Point, b: Point, far: number): Point => {
    const all = apart(a, b) || 1;
    return [a[0] + ((b[0] - a[0]) * far) / all, a[1] + ((b[1] - a[1]) * far) / all];
  };
  points.forEach((point, i) => {
    const [a, b] = [points[i - 1], points[i + 1]];
    if (a === undefined) return;
    if (b === undefined) d += `L${pointText(point)}`;
    else {
      const radius = Math.min(CORNER, apart(a, point) / 2, apart(point, b) / 2);
      d += `L${pointText(towards(point, a, radius))}Q${pointText(point)} ${pointText(towards(point, b, radius))}`;
    }
  });
  let best: [Point, Point] = [points[0], points[1]];
  for (let i = 1; i < points.length; i += 1) {
    const level = Math.abs(points[i][1] - points[i - 1][1]) < 1 ? apart(points[i - 1], points[i]) : 0;
    if (level > Math.abs(best[1][0] - best[0][0])) best = [points[i - 1], points[i]];
  }
  return { d, x: (best[0][0] + best[1][0]) / 2, y: best[0][1] - 6, points: samplePoints(points) };
}

/** Returns equidistant points along a line with corners. */
function samplePoints(points: readonly Point[]): Point[] {
  const lengths = points.slice(1).map((point, i) => Math.hypot(point[0] - points[i][0], point[1] - points[i][1]));
  const total = lengths.reduce((sum, value) => sum + value, 0) || 1;
  return Array.from({ length: SAMPLES }, (_, i): Point => {
    let left = (total * i) / (SAMPLES - 1);
    let k = 0;
    while (k < lengths.length - 1 && left > lengths[k]) {
      left -= lengths[k];
      k += 1;
    }
    const t = lengths[k] === 0 ? 0 : left / lengths[k];
    return [points[k][0] + (points[k + 1][0] - points[k][0]) * t, points[k][1] + (points[k + 1][1] - points[k][1]) * t];
  });
}
