// Tables as columns, as traces travel: the twin of tinyexplore/explore/columns.py, on the shapes that are generated from the
// same model. Whether the rows are valid is checked afterwards.

import { SHAPES } from "./model";

type Shape = string | { row: string } | { many: Shape } | { either: readonly Shape[] } | { index: string; before: boolean } | { id: true } | object;
type Row = Record<string, unknown>;

/** How a column is coded: ids by their difference from the row "previous" to it, lists of ids by their "distance" from their row. */
type Code = "previous" | "distance" | null;

interface Field {
  code: Code;
  /** Puts rows in place of columns in a value; null where there can be none. */
  unpack: ((value: unknown) => unknown) | null;
}

const known = new Map<string, Map<string, Field>>();

/** `data`, an object of `kind`, with rows in place of columns. */
export function unpacked(kind: string, data: unknown): unknown {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return data;
  const row = data as Row;
  for (const [name, { unpack }] of fieldsOf(kind)) if (unpack !== null && Object.hasOwn(row, name)) row[name] = unpack(row[name]);
  return row;
}

function fieldsOf(kind: string): Map<string, Field> {
  const found = known.get(kind);
  if (found !== undefined) return found;
  const fields = new Map<string, Field>();
  known.set(kind, fields);
  for (const [name, [shape]] of Object.entries(SHAPES[kind] as Record<string, readonly Shape[]>)) {
    fields.set(name, { code: codeOf(shape), unpack: unpackerOf(shape) });
  }
  return fields;
}

function codeOf(shape: Shape): Code {
  if (typeof shape === "string") return null;
  if ("index" in shape || "id" in shape) return "previous";
  if ("either" in shape) return shape.either.some((one) => codeOf(one) === "previous") ? "previous" : null;
  const item = "many" in shape ? shape.many : "";
  return typeof item === "object" && "index" in item && item.before ? "distance" : null;
}

function unpackerOf(shape: Shape): Field["unpack"] {
  if (typeof shape === "string") return null;
  if ("row" in shape) {
    const { row } = shape;
    return holdsTables(row) ? (value) => unpacked(row, value) : null;
  }
  if ("either" in shape) return shape.either.map(unpackerOf).find((one) => one !== null) ?? null;
  const item = "many" in shape ? shape.many : "";
  if (typeof item !== "object" || !("row" in item)) return null;
  const { row } = item;
  return (value) => {
    const rows = Array.isArray(value) ? value : rowsOf(row, value);
    return Array.isArray(rows) && holdsTables(row) ? rows.map((one) => unpacked(row, one)) : rows;
  };
}

function holdsTables(kind: string): boolean {
  return [...fieldsOf(kind).values()].some(({ unpack }) => unpack !== null);
}

/** The rows of a table in columns; what is none is given back, for the check to refuse. */
function rowsOf(kind: string, data: unknown): unknown {
  const { rows: count, columns } = (data ?? {}) as { rows?: unknown; columns?: unknown };
  if (typeof count !== "number" || typeof columns !== "object" || columns === null) return data;
  const fields = fieldsOf(kind);
  const found = Object.entries(columns as Record<string, unknown>).filter(([name]) => fields.has(name));
  if (found.length === 0 || found.some(([, column]) => !Array.isArray(column) || column.length !== count)) return data;
  const decoded = found.map(([name, column]) => [name, decode(column as unknown[], fields.get(name)?.code ?? null)] as const);
  return Array.from({ length: count }, (_, place) => {
    const row: Row = {};
    for (const [name, column] of decoded) row[name] = column[place];
    return row;
  });
}

function decode(column: unknown[], code: Code): unknown[] {
  if (code === "distance") {
    return column.map((items, place) => (Array.isArray(items) ? items.map((one: unknown) => (typeof one === "number" ? place - one : one)) : items));
  }
  if (code === null) return column;
  let last = 0;
  return column.map((value) => {
    if (typeof value !== "number") return value;
    last += value;
    return last;
  });
}
