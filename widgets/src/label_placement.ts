// Places the labels of a chart without overlaps with labels or points. Mirrors tracefile/pictures/labels.py.

/** The middle of a label, and its angle in degrees. */
export type LabelPlace = readonly [x: number, y: number, angle: number];

export type Spot = readonly [x: number, y: number];

/** The label positions along a horizontal ceiling of the roofline, best first. */
export const FLAT_SHARES = [0, 1, 0.5, 0.25, 0.75];
export const SLOPE_SHARES = [0.42, 0.58, 0.28, 0.72, 0.15, 0.86];

const HALF = 6.5; // half the height of a line of text, with its border
export const LETTER = 6.3; // average width of a letter

/** Areas that labels must avoid. */
export interface OccupiedSpace {
  points?: readonly Spot[];
  radius?: number;
  /** Lines from one end to the other. */
  lines?: readonly (readonly [Spot, Spot])[];
  /** The top of the area for labels. */
  top?: number;
}

/** Chooses a position for each label: the first free one, else the one that covers least. */
export function placeLabels(
  labels: readonly (readonly [text: string, places: readonly LabelPlace[]])[],
  { points = [], radius = 10, lines = [], top = Number.NEGATIVE_INFINITY }: OccupiedSpace = {},
): LabelPlace[] {
  const covered: (readonly [x: number, y: number, radius: number])[] = points.map(([x, y]) => [x, y, radius]);
  for (const [[x0, y0], [x1, y1]] of lines) {
    const steps = Math.max(1, Math.ceil(Math.hypot(x1 - x0, y1 - y0) / 6));
    for (let i = 0; i <= steps; i += 1) covered.push([x0 + ((x1 - x0) * i) / steps, y0 + ((y1 - y0) * i) / steps, 1]);
  }
  return labels.map(([text, places]) => {
    const scored = places.map((place) => {
      const spots = sampleLabel(text, place);
      const hits = spots.filter(
        ([x, y]) => y < top || covered.some(([a, b, far]) => Math.hypot(x - a, y - b) < HALF + far),
      );
      return { place, spots, hits: hits.length };
    });
    const best = scored.reduce((a, b) => (b.hits < a.hits ? b : a));
    for (const [x, y] of best.spots) covered.push([x, y, HALF]);
    return best.place;
  });
}

/** The centers of dots, of which none covers the number of another one: those too near move apart, to the sides. */
export function spreadDots(points: readonly Spot[], radius: number): Spot[] {
  const order = points.map((_, i) => i).sort((a, b) => points[a][0] - points[b][0] || points[a][1] - points[b][1]);
  const placed: Spot[] = [];
  const isFree = (x: number, y: number): boolean =>
    placed.every((spot) => Math.hypot(spot[0] - x, spot[1] - y) >= 2 * radius);
  const spots = [...points];
  for (const i of order) {
    const [x, y] = points[i];
    let far = 0;
    while (far < 12 * radius && !isFree(x + far, y)) far += radius / 4;
    spots[i] = far < 12 * radius ? [x + far, y] : [x, y];
    placed.push(spots[i]);
  }
  return spots;
}

/** Returns points along the middle line of a label. */
function sampleLabel(text: string, [x, y, angle]: LabelPlace): Spot[] {
  const half = (text.length * LETTER) / 2;
  const turn = (angle * Math.PI) / 180;
  const steps = Math.max(1, Math.ceil(half / 4));
  return Array.from({ length: 2 * steps + 1 }, (_, i): Spot => {
    const t = ((i - steps) / steps) * half;
    return [x + t * Math.cos(turn), y + t * Math.sin(turn)];
  });
}

/** Returns positions above and below a line, at these shares of its length; those beyond the ends are omitted. */
export function listPlaces(text: string, [x0, y0]: Spot, [x1, y1]: Spot, shares: readonly number[]): LabelPlace[] {
  const length = Math.hypot(x1 - x0, y1 - y0) || 1;
  const angle = (Math.atan2(y1 - y0, x1 - x0) * 180) / Math.PI;
  const half = Math.min(0.5, (text.length * LETTER) / 2 / length);
  const [across, down] = [(y1 - y0) / length, -(x1 - x0) / length];
  return [9, -10].flatMap((far) =>
    shares.map((share): LabelPlace => {
      const t = Math.max(half, Math.min(1 - half, share));
      return [x0 + (x1 - x0) * t + across * far, y0 + (y1 - y0) * t + down * far, angle];
    }),
  );
}
