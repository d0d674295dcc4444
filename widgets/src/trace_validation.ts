// Validates a trace, or rejects it with the position and the reason: the validation of
// tinyexplore/explore/tracefile/validation.py, on the shapes generated from the same model.

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
  | { least: number; most?: number; of: Shape }
  | { words: string[] }
  | { row: string }
  | { many: Shape }
  | { each: Shape[] }
  | { either: Shape[] };

/** The context of a check: the sizes of the tables, and the index of the current row. */
interface Around {
  readonly sizes: Readonly<Record<string, number>>;
  row: number;
}

/**
 * Throws for a value that does not have its shape. Each shape has one check, created on first use: a large trace has a
 * million values.
 */
type Check = (value: unknown, around: Around) => void;

/** A rejected value. Its path is computed while unwinding, so that valid values have no cost. */
class Refused extends Error {
  path = "";
}

const LOOSE_SURROGATE = /\p{Surrogate}/u;

/** Returns `data` as a trace; missing fields of an older trace get their defaults. */
export function validTrace(data: unknown): Trace {
  checkValue(checkOf({ row: "Trace" }), data, "", { sizes: sizesOf(data), row: 0 });
  const trace = data as Trace;
  checkKinds(trace);
  checkOrigins(trace);
  return trace;
}

const OWN_KINDS = ["lazybuffer", "uop"]; // the kinds of nodes of a trace without a dialect

/** Checks that every node's kind is a level of the dialect. */
function checkKinds({ dialect, nodes }: Trace): void {
  const kinds = new Set(dialect?.levels.map(({ kind }) => kind) ?? OWN_KINDS);
  nodes.forEach(({ kind }, id) => {
    if (!kinds.has(kind))
      throw new PayloadError(`nodes[${id}].kind: ${describeValue(kind)} is not one of ${[...kinds].join(", ")}`);
  });
}

/** Checks that the origin of each line exists in the previous text. */
function checkOrigins({ stage_texts: texts }: Trace): void {
  texts.forEach(({ before, lines }, number) => {
    const count = before === null ? 0 : texts[before].lines.length;
    lines.forEach(({ origin }, i) => {
      if (origin !== null && origin >= count)
        throw new PayloadError(
          `stage_texts[${number}].lines[${i}].origin: line ${origin} does not exist; the text before has ${count} lines`,
        );
    });
  });
}

/**
 * Validates a single row, and returns its id: that of one of the `count` rows of a table of `trace`, or the next one.
 */
export function validRow(kind: string, table: string, data: unknown, trace: Trace, count: number): number {
  const id = Number((data as { id?: unknown } | null)?.id);
  const row = Number.isInteger(id) && id >= 0 && id < count ? id : count;
  const sizes = { ...sizesOf(trace), [table]: Math.max(count, row + 1) };
  checkValue(checkOf({ row: kind }), data, `${table}[${row}]`, { sizes, row });
  return row;
}

function sizesOf(trace: unknown): Record<string, number> {
  const tables = Object.entries((trace ?? {}) as object).filter(([, value]) => Array.isArray(value));
  return Object.fromEntries(tables.map(([name, value]) => [name, value.length]));
}

function checkValue(check: Check, value: unknown, place: string, around: Around): void {
  try {
    check(value, around);
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    throw new PayloadError(`${`${place}${error.path}`.replace(/^\./, "")}: ${error.message}`);
  }
}

function refuse(why: string): never {
  throw new Refused(why);
}

/** Returns the error with the path extended by one step. */
function extendPath(error: unknown, step: string): unknown {
  if (error instanceof Refused) error.path = step + error.path;
  return error;
}

function checkOf(shape: Shape): Check {
  if (typeof shape === "string")
    return (value) => (isOf(shape, value) ? undefined : refuse(`expected ${shape}, found ${describeValue(value)}`));
  if ("row" in shape) return checkOfRow(shape.row);
  if ("many" in shape) return checkOfMany(shape.many);
  if ("each" in shape) return checkOfEach(shape.each.map(checkOf));
  if ("either" in shape) return checkOfEither(shape.either);
  if ("least" in shape) {
    const { least, most, of } = shape;
    const check = checkOf(of);
    return (value, around) => {
      check(value, around);
      if ((value as number) < least) refuse(`${value} is below ${least}`);
      if (most !== undefined && (value as number) > most) refuse(`${value} is above ${most}`);
    };
  }
  if ("words" in shape) {
    const words = new Set<unknown>(shape.words);
    return (value) =>
      words.has(value) ? undefined : refuse(`${describeValue(value)} is not one of ${shape.words.join(", ")}`);
  }
  return checkOfId(shape);
}

function checkOfId(shape: { id: true } | { index: string; before: boolean }): Check {
  const isNumber = checkOf("int");
  if ("id" in shape) {
    return (value, around) => {
      isNumber(value, around);
      if (value !== around.row) refuse(`found id ${value} in row ${around.row}; an id must equal its row number`);
    };
  }
  const { index, before } = shape;
  const what = before ? `no earlier one of the ${index}` : `none of the ${index}`;
  return (value, around) => {
    isNumber(value, around);
    const end = before ? around.row : (around.sizes[index] ?? 0);
    const id = value as number;
    if (id < 0 || id >= end) refuse(`${id} is ${what} (${end > 0 ? `0..${end - 1}` : "there are none"})`);
  };
}

const rows = new Map<string, Check>();

function checkOfRow(name: string): Check {
  const rowFields = rows.get(name);
  if (rowFields !== undefined) return rowFields;
  // created later, because rows may contain rows of their kind
  let fields: { field: string; check: Check; otherwise: readonly unknown[] }[] | null = null;
  const check: Check = (value, around) => {
    fields ??= Object.entries(SHAPES[name]).map(([field, [shape, ...otherwise]]) => ({
      field,
      check: checkOf(shape as Shape),
      otherwise,
    }));
    if (typeof value !== "object" || value === null || Array.isArray(value))
      refuse(`expected an object for ${name}, found ${describeValue(value)}`);
    const fieldValues = value as Record<string, unknown>;
    for (const fieldCheck of fields) {
      const fieldValue = fieldValues[fieldCheck.field]; // JSON has no undefined
      if (fieldValue === undefined) {
        if (fieldCheck.otherwise.length === 0) refuse(`${name} has no ${fieldCheck.field}`);
        fieldValues[fieldCheck.field] = fieldCheck.otherwise[0];
        continue;
      }
      try {
        fieldCheck.check(fieldValue, around);
      } catch (error) {
        throw extendPath(error, `.${fieldCheck.field}`);
      }
    }
  };
  rows.set(name, check);
  return check;
}

/** Returns the check of an array. Rows of a table are checked with their index as `row`; other items inherit it. */
function checkOfMany(item: Shape): Check {
  const isTable = typeof item !== "string" && "row" in item && SHAPES[item.row]?.id !== undefined;
  const check = checkOf(item);
  return (value, around) => {
    if (!Array.isArray(value)) refuse(`expected an array, found ${describeValue(value)}`);
    const rowContext = isTable ? { sizes: around.sizes, row: 0 } : around;
    for (let place = 0; place < value.length; place += 1) {
      if (isTable) rowContext.row = place;
      try {
        check(value[place], rowContext);
      } catch (error) {
        throw extendPath(error, `[${place}]`);
      }
    }
  };
}

function checkOfEach(checks: Check[]): Check {
  return (value, around) => {
    if (!Array.isArray(value)) refuse(`expected an array, found ${describeValue(value)}`);
    if (value.length !== checks.length) refuse(`expected ${checks.length} values, found ${value.length}`);
    checks.forEach((check, place) => {
      try {
        check(value[place], around);
      } catch (error) {
        throw extendPath(error, `[${place}]`);
      }
    });
  };
}

function checkOfEither(either: Shape[]): Check {
  const scalars = either.filter((shape) => typeof shape === "string");
  const other = either.find((alternative) => typeof alternative !== "string");
  const check = other === undefined ? null : checkOf(other);
  return (value, around) => {
    for (const scalar of scalars) if (isOf(scalar, value)) return;
    if (check === null) refuse(`expected ${scalars.join(" or ")}, found ${describeValue(value)}`);
    check(value, around);
  };
}

function isOf(kind: string, value: unknown): boolean {
  if (kind === "null") return value === null;
  if (kind === "str") return typeof value === "string" && !LOOSE_SURROGATE.test(value);
  if (kind === "bool") return typeof value === "boolean";
  if (typeof value !== "number" || !Number.isFinite(value)) return false;
  return kind === "float" || (Number.isInteger(value) && Math.abs(value) < 2 ** 63);
}

function describeValue(value: unknown): string {
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" && value !== null ? "an object" : JSON.stringify(value).slice(0, 40);
}
