// Decodes tables that are stored as columns: the counterpart of tinyexplore/explore/tracefile/columns.py, with the
// shapes generated from the same model. The rows are validated afterwards.

import { SHAPES } from "./model";
import { PayloadError } from "./trace_validation";

const HOLE = "\u0001"; // stands for a number in the form of a text
const MOST_CHARACTERS = 256 * 2 ** 20;

type Shape =
  | string
  | { row: string }
  | { many: Shape }
  | { either: readonly Shape[] }
  | { index: string; before: boolean }
  | { id: true }
  | object;
type Row = Record<string, unknown>;

/**
 * The coding of a column. "previous": an id, as the difference from the previous row. "distance": a list of ids, each
 * as the distance from its row. "chained": a list of ids, each as the difference from the previous id; the first counts
 * from the first id of the previous list.
 */
type Code = "previous" | "distance" | "chained" | null;

interface Field {
  code: Code;
  /** Replaces columns by rows in a value; null if it cannot contain tables. */
  unpack: ((value: unknown) => unknown) | null;
}

const fieldsOfKind = new Map<string, Map<string, Field>>();

/** Returns `data`, an object of type `kind`, with rows instead of columns. */
export function unpackTables(kind: string, data: unknown): unknown {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return data;
  const row = data as Row;
  if (kind === "Trace") readTexts(row);
  for (const [name, { unpack }] of fieldsOf(kind))
    if (unpack !== null && Object.hasOwn(row, name)) row[name] = unpack(row[name]);
  if (kind === "Trace" && Array.isArray(row.nodes)) {
    for (const node of row.nodes as Row[]) if (node?.digest === null) node.digest = ""; // filled in by digests.ts
  }
  return row;
}

/** Replaces numbers of texts by the texts in the tables of lines. */
function readTexts(trace: Row): void {
  const texts = unpackTexts(trace.texts);
  if (texts === null) return;
  delete trace.texts;
  for (const table of [...readLines(trace.programs), ...readLines(trace.stage_texts)]) {
    const columns = memberOf(table, "columns") as Row | undefined;
    const column = memberOf(columns, "text");
    if (!Array.isArray(column)) continue;
    columns!.text = decode(column, "previous").map((textIndex) =>
      typeof textIndex === "number" ? (texts[textIndex] ?? textIndex) : textIndex,
    );
  }
}

/** Returns the lines of each row of a table of listings. */
function readLines(listings: unknown): unknown[] {
  const tables = Array.isArray(listings)
    ? listings.map((listing) => memberOf(listing, "lines"))
    : memberOf(memberOf(listings, "columns"), "lines");
  return Array.isArray(tables) ? (tables as unknown[]) : [];
}

/**
 * Returns the texts of lines from their forms and the differences of their numbers. Older releases store a plain list.
 */
export function unpackTexts(packed: unknown): unknown[] | null {
  if (Array.isArray(packed)) return packed as unknown[];
  const { forms, form, numbers } = (packed ?? {}) as { forms?: string[]; form?: number[]; numbers?: number[] };
  if (!Array.isArray(forms) || !Array.isArray(form) || !Array.isArray(numbers)) return null;
  const pieces = forms.map((form) => String(form).split(HOLE));
  const last = pieces.map(({ length }) => new Array<number>(length - 1).fill(0));
  let used = 0;
  let characters = 0;
  return form.map((number) => {
    const values = last[number];
    if (values === undefined || used + values.length > numbers.length)
      throw new PayloadError("The texts of its lines are incomplete.");
    let text = "";
    values.forEach((value, row) => {
      values[row] = value + numbers[used++];
      text += pieces[number][row] + String(values[row]);
    });
    text += pieces[number].at(-1);
    characters += text.length;
    if (characters > MOST_CHARACTERS) throw new PayloadError(`Its lines have more than ${MOST_CHARACTERS} characters.`);
    return text;
  });
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, name) ? (value as Row)[name] : undefined;
}

function fieldsOf(kind: string): Map<string, Field> {
  const cached = fieldsOfKind.get(kind);
  if (cached !== undefined) return cached;
  const fields = new Map<string, Field>();
  fieldsOfKind.set(kind, fields);
  for (const [name, [shape]] of Object.entries(SHAPES[kind] as Record<string, readonly Shape[]>)) {
    fields.set(name, { code: codeOf(shape), unpack: unpackerOf(shape) });
  }
  return fields;
}

function codeOf(shape: Shape): Code {
  if (typeof shape === "string") return null;
  if ("index" in shape || "id" in shape) return "previous";
  if ("either" in shape)
    return shape.either.some((alternative) => codeOf(alternative) === "previous") ? "previous" : null;
  const item = "many" in shape ? shape.many : "";
  if (typeof item !== "object" || !("index" in item || "id" in item)) return null;
  return "index" in item && item.before ? "distance" : "chained";
}

function unpackerOf(shape: Shape): Field["unpack"] {
  if (typeof shape === "string") return null;
  if ("row" in shape) {
    const { row } = shape;
    return holdsTables(row) ? (value) => unpackTables(row, value) : null;
  }
  if ("either" in shape) return shape.either.map(unpackerOf).find((unpacker) => unpacker !== null) ?? null;
  const item = "many" in shape ? shape.many : "";
  if (typeof item !== "object" || !("row" in item)) return null;
  const { row } = item;
  return (value) => {
    const rows = Array.isArray(value) ? value : rowsOf(row, value);
    return Array.isArray(rows) && holdsTables(row) ? rows.map((table) => unpackTables(row, table)) : rows;
  };
}

function holdsTables(kind: string): boolean {
  return [...fieldsOf(kind).values()].some(({ unpack }) => unpack !== null);
}

/** Returns the rows of a table in columns; returns an invalid table unchanged, for the validation to reject. */
function rowsOf(kind: string, data: unknown): unknown {
  const { rows: count, columns, chained, differences } = (data ?? {}) as Record<string, unknown>;
  if (typeof count !== "number" || typeof columns !== "object" || columns === null) return data;
  const fields = fieldsOf(kind);
  const knownColumns = Object.entries(columns as Record<string, unknown>).filter(([name]) => fields.has(name));
  if (knownColumns.length === 0 || knownColumns.some(([, column]) => !Array.isArray(column) || column.length !== count))
    return data;
  const codeIn = (name: string): Code => {
    const code = fields.get(name)?.code ?? null;
    if (Array.isArray(differences) && differences.includes(name)) return "previous"; // times that are whole numbers
    // written by an older release
    return code === "chained" && !(Array.isArray(chained) && chained.includes(name)) ? null : code;
  };
  const decoded = knownColumns.map(([name, column]) => [name, decode(column as unknown[], codeIn(name))] as const);
  return Array.from({ length: count }, (_, rowNumber) => {
    const row: Row = {};
    for (const [name, column] of decoded) row[name] = column[rowNumber];
    return row;
  });
}

function decode(column: unknown[], code: Code): unknown[] {
  if (code === "distance") {
    return column.map((items, row) =>
      Array.isArray(items) ? items.map((item: unknown) => (typeof item === "number" ? row - item : item)) : items,
    );
  }
  if (code === null) return column;
  if (code === "chained") return unchain(column);
  let last = 0;
  return column.map((value) => {
    if (typeof value !== "number") return value;
    last += value;
    return last;
  });
}

function unchain(column: unknown[]): unknown[] {
  let first = 0;
  return column.map((items) => {
    if (!Array.isArray(items) || items.some((item) => typeof item !== "number")) return items as unknown;
    let last = first;
    const ids = items.map((value: number) => (last += value));
    first = ids[0] ?? first;
    return ids;
  });
}
