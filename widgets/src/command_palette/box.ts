// The box "Go to", which finds places by name: matches are listed, the best first; Enter opens one.

import { copyText } from "../clipboard";
import { h, replaceChildren } from "../dom";
import { count } from "../format";
import { parseQuery } from "../search_query";
import { GraphReader } from "../visible_graph";
import { type Entry, type Explain, KINDS, type Reach, entriesOf } from "./entries";
import { WORD, matchOf } from "./ranking";

const MOST = 50; // rows; further matches are counted
let boxes = 0;

interface Row {
  kind: string;
  name: string;
  says: string;
  marked: readonly number[];
  key?: string;
  copies?: string;
  go: () => void;
}

/** Returns the best matches of a query, at most `most`, and the number of all matches. */
export function findEntries(query: string, entries: readonly Entry[], limit = MOST): { rows: Row[]; total: number } {
  const isEmpty = query.trim() === "";
  const offered = isEmpty ? entries.filter(({ kind }) => kind === "panel" || kind === "action") : entries;
  const matches = offered.flatMap((entry, order) => {
    const typed = query.trim().toLowerCase();
    const isNamed = typed.length > 2 && entry.words?.some((word) => word.startsWith(typed));
    const nameMatch = matchOf(query, entry.name, `${entry.kind} ${entry.says}`);
    const match = isNamed && (nameMatch === null || nameMatch.score < WORD) ? { score: WORD, marked: [] } : nameMatch;
    return match === null ? [] : [{ ...match, entry, order }];
  });
  if (!isEmpty)
    matches.sort(
      (a, b) =>
        b.score - a.score ||
        KINDS.indexOf(a.entry.kind) - KINDS.indexOf(b.entry.kind) ||
        a.entry.name.length - b.entry.name.length ||
        a.order - b.order,
    );
  return { rows: matches.slice(0, limit).map(({ entry, marked }) => ({ ...entry, marked })), total: matches.length };
}

/** Opens the box over the explorer; `closed` is called when it closes. Returns a function that closes it. */
export function openBox(reach: Reach, explain: Explain, closed: () => void): () => void {
  return new Box(reach, entriesOf(reach, explain), closed).close;
}

class Box {
  private readonly id = `tinyexplore-goto-${++boxes}`;
  private readonly field = h("input", {
    type: "text",
    role: "combobox",
    class: "search",
    placeholder: "Panel, kernel, pass, rule, opcode …",
    autocomplete: "off",
    spellcheck: "false",
    "aria-label": "Go to: panels, actions, kernels, passes, rules, operations, opcodes and tensors by name",
    "aria-autocomplete": "list",
    "aria-expanded": "true",
    "aria-controls": this.id,
  });
  private readonly list = h("div", {
    id: this.id,
    class: "found-list scroll",
    role: "listbox",
    "aria-label": "Matches",
  });
  private readonly status = h("div", { class: "goto-status", role: "status" });
  private readonly element: HTMLElement;
  private readonly before = document.activeElement as HTMLElement | null;
  private rows: Row[] = [];
  private activeRow = 0;
  private isClosed = false;

  constructor(
    private readonly reach: Reach,
    private readonly entries: readonly Entry[],
    private readonly closed: () => void,
  ) {
    this.element = h(
      "div",
      { class: "goto", role: "dialog", "aria-label": "Go to" },
      this.field,
      this.list,
      this.status,
    );
    this.field.addEventListener("input", () => this.search());
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.element.addEventListener("mousedown", (event) => {
      if (event.target !== this.field) event.preventDefault(); // the field keeps the focus
    });
    this.element.addEventListener("focusout", (event) => {
      if (!this.element.contains(event.relatedTarget as Node | null)) this.close();
    });
    this.list.addEventListener("click", (event) => {
      const row = (event.target as Element).closest<HTMLElement>('[role="option"]');
      if (row !== null) this.take(Number(row.dataset.at));
    });
    reach.root.append(this.element);
    this.search();
    this.field.focus({ preventScroll: true });
  }

  /** Removes the box; the focus returns to the previous element, if no other element has it. */
  readonly close = (): void => {
    if (this.isClosed) return; // losing the focus closes it, too
    this.isClosed = true;
    const hadFocus = this.element.contains(document.activeElement);
    this.closed();
    const { root } = this.reach;
    const back = this.before !== null && root.contains(this.before) ? this.before : root;
    this.element.remove();
    if (hadFocus) back.focus({ preventScroll: true });
  };

  private search(): void {
    const query = this.field.value;
    const { rows, total } = findEntries(query, this.entries);
    const words = query.trim();
    this.rows = words === "" ? rows : [...rows, ...this.offerTextSearch(words), this.offerGraphSearch(words)];
    this.activeRow = 0;
    replaceChildren(this.list, ...this.rows.map((row, i) => this.makeOption(row, i)));
    this.list.scrollTop = 0;
    const more = total > rows.length ? `, the best ${rows.length} shown` : "";
    this.status.textContent =
      words === ""
        ? "Type a name · ↑ ↓ choose · Enter opens · Esc closes"
        : `${count(total, "match", "matches")}${more}`;
    this.mark();
  }

  /** Offers the typed text as a search of all stages' texts, if there are any. */
  private offerTextSearch(query: string): Row[] {
    const { store } = this.reach;
    const texts = store.index.trace.stage_texts.length;
    if (texts === 0) return [];
    const says = `lines of ${count(texts, "text")}`; // their lines are counted when they are shown
    const go = (): void => void store.chunks.load("stage_texts").then(({ findInTexts }) => findInTexts!(store, query));
    return [{ kind: "search", name: `Find “${query}” in the texts of stages`, says, marked: [], go }];
  }

  /** Offers the typed text as a search of the visible graph. */
  private offerGraphSearch(query: string): Row {
    const { store, find } = this.reach;
    const matcher = parseQuery(query, store.index.trace.nodes);
    const isQuery = typeof matcher === "function";
    const nodes = isQuery
      ? [...new GraphReader(store.index).graphAt(store.cursor).graph.nodes.values()].filter(({ node }) =>
          matcher(store.index.node(node)),
        )
      : [];
    const says = matcher !== null && !isQuery ? matcher.error : count(nodes.length, "node");
    return { kind: "search", name: `Find “${query}” in the graph`, says, marked: [], go: () => find(query) };
  }

  private makeOption({ kind, name, says, marked, key }: Row, i: number): HTMLElement {
    const letters = [...marked];
    const parts: (string | HTMLElement)[] = [];
    let from = 0;
    while (letters.length > 0) {
      const start = letters.shift()!;
      let end = start + 1;
      while (letters[0] === end) end = letters.shift()! + 1;
      parts.push(name.slice(from, start), h("mark", {}, name.slice(start, end)));
      from = end;
    }
    parts.push(name.slice(from));
    const attributes = {
      role: "option",
      id: `${this.id}-${i}`,
      class: `answer of-${kind}`,
      "data-at": i,
      title: says,
    };
    return h(
      "div",
      attributes,
      h("span", { class: "kind" }, kind),
      h("span", { class: "entry-name" }, ...parts),
      h("span", { class: "entry-description" }, says),
      key === undefined ? null : h("kbd", {}, key),
    );
  }

  private onKey(event: KeyboardEvent): void {
    event.stopPropagation();
    if (event.isComposing) return;
    const moves: Record<string, number> = {
      ArrowDown: this.activeRow + 1,
      ArrowUp: this.activeRow - 1,
      PageDown: Math.min(this.activeRow + 8, this.rows.length - 1),
      PageUp: Math.max(this.activeRow - 8, 0),
    };
    const { key } = event;
    if (moves[key] === undefined && key !== "Enter" && key !== "Escape" && key !== "Tab") return;
    event.preventDefault();
    if (key === "Enter") this.take(this.activeRow);
    else if (moves[key] === undefined) this.close();
    else if (this.rows.length > 0) {
      this.activeRow = (moves[key] + this.rows.length) % this.rows.length;
      this.mark();
    }
  }

  private mark(): void {
    [...this.list.children].forEach((row, i) => row.setAttribute("aria-selected", String(i === this.activeRow)));
    const chosen = this.list.children[this.activeRow] as HTMLElement | undefined;
    this.field.setAttribute("aria-activedescendant", chosen?.id ?? "");
    chosen?.scrollIntoView({ block: "nearest" });
  }

  private take(index: number): void {
    const row = this.rows[index];
    if (row === undefined) return;
    if (row.copies !== undefined) {
      this.activeRow = index;
      this.mark();
      void copyText(row.copies).then((isDone) => {
        this.status.textContent = `${isDone ? "Copied" : "Copy this"}: ${row.copies!.replace("\n", "; ")}`;
        this.field.focus({ preventScroll: true });
      });
      return;
    }
    this.close();
    this.reach.root.focus({ preventScroll: true });
    void this.reach.openWorkbench().then(row.go);
  }
}
