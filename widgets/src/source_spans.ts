// Parts of a line of Python from which nodes come: the column ranges of frames, and lines split at their ends.

import type { Frame } from "./model";
import type { TraceIndex } from "./trace_index";
import type { Token } from "./tokenizer";

/** A piece of a line without the begin or end of a span inside. */
export interface Piece {
  token: Token;
  /** The frames whose spans contain it, the innermost first. */
  frames: number[];
}

/** Columns of a line, from 0, in characters. */
interface Range {
  frame: number;
  from: number;
  to: number;
  size: number;
}

/** Returns line (from 1) → its ranges in spans. */
export function rangesOf(frames: readonly Frame[], source: number, text: string): Map<number, Range[]> {
  const lines = text.split("\n").map((line) => [...line].length);
  const ranges = new Map<number, Range[]>();
  for (const { id, source: frameSource, span } of frames) {
    if (frameSource !== source || span === null) continue;
    const [first, column, last, end] = span;
    const size = lines.slice(first - 1, last - 1).reduce((sum, length) => sum + length, 0) + end - column;
    for (let line = first; line <= last; line += 1) {
      const range = {
        frame: id,
        from: line === first ? column : 0,
        to: line === last ? end : (lines[line - 1] ?? 0),
        size,
      };
      ranges.set(line, [...(ranges.get(line) ?? []), range]);
    }
  }
  return ranges;
}

/** Splits the tokens of a line at the ends of ranges. Leading blanks belong to no range. */
export function splitAtRanges(tokens: readonly Token[], ranges: readonly Range[]): Piece[] {
  const cuts = new Set(ranges.flatMap(({ from, to }) => [from, to]));
  const indent = [.../^\s*/.exec(tokens.map(([, text]) => text).join(""))![0]].length;
  cuts.add(indent);
  const result: Piece[] = [];
  let column = 0;
  for (const [kind, text] of tokens) {
    let pending = "";
    let begin = column;
    const finish = (): void => {
      if (pending !== "")
        result.push({ token: [kind, pending], frames: begin < indent ? [] : findHolding(ranges, begin) });
      [pending, begin] = ["", column];
    };
    for (const character of text) {
      if (cuts.has(column)) finish();
      pending += character;
      column += 1;
    }
    finish();
  }
  return result;
}

function findHolding(ranges: readonly Range[], column: number): number[] {
  const all = ranges.filter(({ from, to }) => from <= column && column < to);
  return all.sort((a, b) => a.size - b.size).map(({ frame }) => frame);
}

/** Returns the text of a frame's span, "" without one. */
export function spanText({ trace }: TraceIndex, frame: Frame): string {
  if (frame.span === null) return "";
  const [first, column, last, end] = frame.span;
  const lines = (trace.sources[frame.source]?.text.split("\n") ?? []).slice(first - 1, last).map((line) => [...line]);
  return lines
    .map((line, i) =>
      line
        .slice(i === 0 ? column : 0, i === lines.length - 1 ? end : undefined)
        .join("")
        .trim(),
    )
    .join(" ");
}

/** Returns the frames in which any of these nodes was created. */
export function framesOf(index: TraceIndex, nodes: Iterable<number>): Set<number> {
  const frames = new Set<number>();
  for (const id of nodes) {
    const { user } = index.node(id);
    if (user !== null) frames.add(user);
  }
  return frames;
}

/** Returns the kernel that computes a frame's nodes, ignoring views; null for none or several. */
export function kernelOfFrame(index: TraceIndex, frame: number): number | null {
  const computing = index.nodesOfFrame(frame).filter((id) => index.node(id).group !== "movement");
  const kernels = new Set(computing.flatMap((id) => index.firstKernelOf.get(id) ?? []));
  return kernels.size === 1 ? [...kernels][0] : null;
}

/** A keyboard stop in a listing: a line, or one part of it. */
export interface LineStop {
  line: number;
  nodes: readonly number[];
}

/** Returns each line that has nodes, followed by its parts if there are several. */
export function listLineStops(
  index: TraceIndex,
  lines: readonly { nodes: readonly number[]; parts: readonly Piece[] }[],
): LineStop[] {
  const stops: LineStop[] = [];
  const visited = new Set<number>();
  lines.forEach(({ nodes, parts }, line) => {
    if (nodes.length > 0) stops.push({ line, nodes });
    const frames = new Set(
      parts.flatMap(({ frames: [first] }) => (first === undefined || visited.has(first) ? [] : [first])),
    );
    for (const frame of frames) {
      const frameNodes = index.nodesOfFrame(frame);
      if (frameNodes.length > 0 && frameNodes.length < nodes.length) stops.push({ line, nodes: frameNodes });
      visited.add(frame);
    }
  });
  return stops;
}
