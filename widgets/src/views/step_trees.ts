// Graphs as text trees: one, or two side by side with their differences.

import { h } from "../dom";
import type { Store } from "../store";
import { type TreeDiffRow, type TreeLine, nodeText } from "../text_tree";

function makeTreeCell(store: Store, line: TreeLine, cls: string): HTMLElement {
  const node = store.index.node(line.node);
  const folded = line.folded > 0 ? h("span", { class: "faint" }, `  + ${line.folded} below`) : null;
  const mark = cls === "del" ? "−" : cls === "add" ? "+" : " ";
  return h(
    "div",
    {
      class: `cell linked ${cls}`,
      "data-node": line.node,
      title: `${nodeText(node)}${node.dtype ? ` : ${node.dtype}` : ""}`,
      onclick: () => store.select([line.node]),
      onmouseenter: () => store.hover([line.node]),
      onmouseleave: () => store.hover([]),
    },
    h("span", { class: "sign", "aria-label": cls === "del" ? "removed" : cls === "add" ? "added" : null }, mark),
    h("span", { class: "faint" }, line.prefix),
    h("b", {}, node.label),
    ` ${line.text.slice(node.label.length).trim()}`,
    folded,
  );
}

/** Returns the lines of a tree, one below the other. */
export function treeOf(store: Store, lines: TreeLine[]): HTMLElement {
  return h("div", { class: "tree" }, ...lines.map((line) => makeTreeCell(store, line, "")));
}

/** Returns both sides; differing lines have a sign. */
export function pairOf(store: Store, rows: TreeDiffRow[]): HTMLElement {
  const heads = ["before", "after"].map((text) => h("div", { class: "cell head" }, text));
  const none = (): HTMLElement => h("div", { class: "cell none" });
  const cells = rows.flatMap(({ before, after, same }) => [
    before === null ? none() : makeTreeCell(store, before, same ? "" : "del"),
    after === null ? none() : makeTreeCell(store, after, same ? "" : "add"),
  ]);
  return h("div", { class: "pair", role: "group", "aria-label": "Before and after" }, ...heads, ...cells);
}
