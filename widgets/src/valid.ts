// A trace is whole and valid, or it is refused with the place and what is wrong there: the check of
// tinyexplore/explore/valid.py, on the shapes that are generated from the same model.

import { SHAPES, type Trace } from "./model";

export class PayloadError extends Error {}

type Shape =
  | "int"
  | "float"
  | "str"
  | "bool"
  | "null"
  | { id: true }
  | { index: string; before: boolean }
  | { least: number; of: Shape }
  | { words: string[] }
  | { row: string }
  | { many: Shape }
  | { each: Shape[] }
  | { either: Shape[] };

/** Where a check stands: the tables' sizes, and the place of the row that it is in. */
interface Around {
  readonly sizes: Readonly<Record<string, number>>;
  readonly row: number;
}

const LOOSE_SURROGATE = /\p{Surrogate}/u;

/** `data` as a trace; fields that an older trace has not are put in. */
export function validTrace(data: unknown): Trace {
  const sizes: Record<string, number> = {};
  for (const [name, value] of Object.entries((data ?? {}) as object)) if (Array.isArray(value)) sizes[name] = value.length;
  check({ row: "Trace" }, data, "", { sizes, row: 0 });
  return data as Trace;
}

/** Rows of one table of `trace`, which came by themselves. */
export function validRows(row: string, table: string, data: unknown, trace: Trace): void {
  const sizes: Record<string, number> = {};
  for (const [name, value] of Object.entries(trace)) if (Array.isArray(value)) sizes[name] = value.length;
  if (Array.isArray(data)) sizes[table] = data.length;
  check({ many: { row } }, data, table, { sizes, row: 0 });
}

function refuse(path: string, why: string): never {
  throw new PayloadError(`${path.replace(/^\./, "")}: ${why}`);
}

function check(shape: Shape, value: unknown, path: string, around: Around): void {
  if (typeof shape === "string") {
    if (!isOf(shape, value)) refuse(path, `expected ${shape}, found ${told(value)}`);
  } else if ("row" in shape) {
    checkRow(shape.row, value, path, around);
  } else if ("many" in shape || "each" in shape) {
    checkItems(shape, value, path, around);
  } else if ("either" in shape) {
    const scalars = shape.either.filter((one) => typeof one === "string");
    if (scalars.some((one) => isOf(one, value))) return;
    const other = shape.either.find((one) => typeof one !== "string");
    if (other === undefined) refuse(path, `expected ${scalars.join(" or ")}, found ${told(value)}`);
    check(other, value, path, around);
  } else if ("least" in shape) {
    check(shape.of, value, path, around);
    if ((value as number) < shape.least) refuse(path, `${value} is below ${shape.least}`);
  } else if ("words" in shape) {
    if (!shape.words.includes(value as string)) refuse(path, `${told(value)} is none of ${shape.words.join(", ")}`);
  } else {
    check("int", value, path, around);
    checkId(shape, value as number, path, around);
  }
}

function checkId(shape: { id: true } | { index: string; before: boolean }, id: number, path: string, around: Around): void {
  if ("id" in shape) {
    if (id !== around.row) refuse(path, `${id} stands at place ${around.row}: ids count the rows`);
    return;
  }
  const end = shape.before ? around.row : (around.sizes[shape.index] ?? 0);
  if (id >= 0 && id < end) return;
  const what = shape.before ? `no earlier one of the ${shape.index}` : `none of the ${shape.index}`;
  refuse(path, `${id} is ${what} (${end > 0 ? `0..${end - 1}` : "there are none"})`);
}

function checkRow(name: string, value: unknown, path: string, around: Around): void {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    refuse(path, `expected an object for ${name}, found ${told(value)}`);
  }
  const found = value as Record<string, unknown>;
  for (const [field, [shape, ...otherwise]] of Object.entries(SHAPES[name] as Record<string, readonly unknown[]>)) {
    if (Object.hasOwn(found, field)) check(shape as Shape, found[field], `${path}.${field}`, around);
    else if (otherwise.length > 0) found[field] = otherwise[0];
    else refuse(path, `${name} has no ${field}`);
  }
}

/** Rows of a table have their place as `row`; what is in a row has the place of that. */
function checkItems(shape: { many: Shape } | { each: Shape[] }, value: unknown, path: string, around: Around): void {
  if (!Array.isArray(value)) refuse(path, `expected an array, found ${told(value)}`);
  if ("each" in shape) {
    if (value.length !== shape.each.length) refuse(path, `expected ${shape.each.length} values, found ${value.length}`);
    shape.each.forEach((one, place) => check(one, value[place], `${path}[${place}]`, around));
    return;
  }
  const item = shape.many;
  const rows = typeof item !== "string" && "row" in item && SHAPES[item.row]?.id !== undefined;
  for (let place = 0; place < value.length; place += 1) {
    check(item, value[place], `${path}[${place}]`, rows ? { sizes: around.sizes, row: place } : around);
  }
}

function isOf(kind: string, value: unknown): boolean {
  if (kind === "null") return value === null;
  if (kind === "str") return typeof value === "string" && !LOOSE_SURROGATE.test(value);
  if (kind === "bool") return typeof value === "boolean";
  if (typeof value !== "number" || !Number.isFinite(value)) return false;
  return kind === "float" || (Number.isInteger(value) && Math.abs(value) < 2 ** 63);
}

function told(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" && value !== null ? "an object" : JSON.stringify(value).slice(0, 40);
}
