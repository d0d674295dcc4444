// The search language of the graph: words, /regular expressions/ and field:value, all of which must match.

import type { Node } from "./model";
import { addDigests } from "./digests";
import { shapeText } from "./format";

export type Matcher = (node: Node) => boolean;

const FIELDS: Record<string, (node: Node) => string> = {
  op: (node) => node.op,
  dtype: (node) => node.dtype,
  shape: (node) => `${shapeText(node.shape)} ${(node.shape ?? []).join("×")} ${(node.shape ?? []).join(",")}`,
  group: (node) => node.group,
  arg: (node) => node.arg,
  label: (node) => node.label,
  name: (node) => node.name,
  detail: (node) => node.detail,
  id: (node) => String(node.id),
  digest: (node) => node.digest,
};

function joinFields(node: Node): string {
  return `${node.name} ${node.label} ${node.op} ${node.detail} ${node.dtype} ${node.arg} ${shapeText(node.shape)}`;
}

/** Returns the matcher of a query on `nodes`, or the error of the query; null for an empty query. */
export function parseQuery(query: string, nodes: readonly Node[] = []): Matcher | null | { error: string } {
  const terms = query.trim().match(/(?:\w+:)?\/(?:[^/\\]|\\.)+\/|\S+/g);
  if (terms === null) return null;
  const tests: Matcher[] = [];
  for (const term of terms) {
    const field = /^(\w+):(.*)$/.exec(term);
    const isField = field !== null && field[1] in FIELDS;
    if (isField && field[1] === "digest") addDigests(nodes);
    const read = isField ? FIELDS[field[1]] : joinFields;
    const needle = isField ? field[2] : term;
    if (needle === "") continue;
    const expression = /^\/(.+)\/$/.exec(needle);
    if (expression === null) {
      const lower = needle.toLowerCase();
      const exact = isField && (field[1] === "op" || field[1] === "id");
      tests.push((node) => (exact ? read(node).toLowerCase() === lower : read(node).toLowerCase().includes(lower)));
      continue;
    }
    try {
      const pattern = new RegExp(expression[1], "i");
      tests.push((node) => pattern.test(read(node)));
    } catch (error) {
      return { error: error instanceof Error ? error.message : String(error) };
    }
  }
  return tests.length === 0 ? null : (node) => tests.every((test) => test(node));
}
