// The story: one stage at a time, its picture at full width and one sentence over it.

import { button, h, replaceChildren } from "../dom";
import { optMeaning } from "../explaining";
import { count, grouped, paragraphs } from "../format";
import { type Chapter, AXIS_WORDS, askingLines, chapters, nestOf, typicalFiring } from "../story";
import type { Change, Store, View } from "../store";
import { type TreeLine, treeDiff } from "../tree";
import { CodeView } from "./code";
import { GraphView } from "./graph";
import { TimingView } from "./timing";

const MOST_LINES = 14;

export class StoryView implements View {
  readonly element = h("section", { class: "story", "aria-label": "Story" });
  readonly chapters: Chapter[];
  private readonly nav = h("nav", { class: "chapters", "aria-label": "Chapters" });
  private readonly sentence = h("p", { class: "sentence", role: "status" });
  private readonly picture = h("div", { class: "picture" });
  private readonly foot = h("div", { class: "turn" });
  private shown: View | null = null;
  private at = 0;

  /** `leave`: goes to the workbench; `turned`: a chapter was opened. */
  constructor(
    private readonly store: Store,
    private readonly leave: () => void,
    private readonly turned: (key: string) => void,
    first: string | null = null,
  ) {
    this.chapters = chapters(store.index);
    const start = this.chapters.findIndex(({ key }) => key === first);
    this.at = Math.max(0, start);
    this.element.append(this.nav, this.sentence, this.picture, this.foot);
    this.room.observe(this.element);
  }

  /** Draws it once it has room: a graph is laid out for that, and a notebook puts a view into the page when it comes to it. */
  private readonly room = new ResizeObserver(() => {
    if (this.element.clientWidth === 0) return;
    this.room.disconnect();
    requestAnimationFrame(() => this.draw());
  });

  update(change: Change): void {
    this.shown?.update(change);
  }

  /** The chapter after (1) or before (-1); after the last one comes the workbench. */
  move(direction: 1 | -1): void {
    if (this.at + direction >= this.chapters.length) this.leave();
    else this.open(Math.max(0, this.at + direction));
  }

  get chapter(): string | null {
    return this.chapters[this.at]?.key ?? null;
  }

  show(key: string): void {
    const at = this.chapters.findIndex((chapter) => chapter.key === key);
    if (at >= 0) this.open(at, true);
  }

  private open(at: number, silent = false): void {
    if (at === this.at) return;
    const hadFocus = this.element.contains(document.activeElement);
    this.at = at;
    this.draw();
    if (hadFocus) this.element.closest<HTMLElement>(".tinyexplore")?.focus();
    if (!silent) this.turned(this.chapters[at].key);
  }

  private draw(): void {
    const chapter = this.chapters[this.at];
    if (chapter === undefined || !this.element.isConnected) return;
    this.shown?.destroy?.();
    this.shown = null;
    this.store.go({ ...chapter.place, tabs: { ...this.store.cursor.tabs, ...chapter.place.tabs } }, true);
    const marks = this.chapters.map((one, i) => {
      const mark = button(one.title, `Chapter ${i + 1}: ${one.title}`, () => this.open(i), "chapter");
      if (i === this.at) mark.setAttribute("aria-current", "step");
      if (i < this.at) mark.classList.add("read");
      return mark;
    });
    replaceChildren(this.nav, ...marks);
    this.sentence.textContent = chapter.sentence;
    this.element.dataset.chapter = chapter.key;
    replaceChildren(this.picture, this.drawPicture(chapter));
    const next = this.chapters[this.at + 1];
    const back = button("← Back", "The chapter before (←)", () => this.move(-1));
    back.disabled = this.at === 0;
    replaceChildren(
      this.foot,
      back,
      h("span", { class: "space" }),
      h("span", { class: "faint" }, `${this.at + 1} of ${this.chapters.length}`),
      h("span", { class: "space" }),
      button(
        next === undefined ? "Open the workbench →" : `${next.title} →`,
        next === undefined ? "All views at once (→)" : "The next chapter (→)",
        () => this.move(1),
        "next",
      ),
    );
  }

  private drawPicture(chapter: Chapter): Element {
    switch (chapter.key) {
      case "python":
        return this.lines();
      case "tensors":
        return this.view(new GraphView(this.store, "role"));
      case "kernels":
        return this.view(new GraphView(this.store));
      case "loops":
        return this.nest(chapter.kernel!);
      case "rewrites":
        return this.firing(chapter.kernel!);
      case "code":
        return this.view(new CodeView(this.store));
      case "time":
        return this.view(new TimingView(this.store));
    }
  }

  private view(view: View): Element {
    this.shown = view;
    return view.element;
  }

  private lines(): Element {
    const all = askingLines(this.store.index);
    const most = Math.max(1, ...all.map(({ asked }) => asked));
    const rows = all.slice(0, MOST_LINES).map(({ source, line, text, asked, earlier }) => {
      const words = [h("u", {}, String(line)), h("code", {}, text || " ")];
      if (asked + earlier === 0) return h("div", { class: "asking plain" }, ...words);
      const choose = (): void => this.store.select(this.store.index.nodesOfLine(source, line));
      const bar = h("span", { class: "asked-bar", style: `width:${(asked / most) * 100}%` });
      const before =
        earlier === 0
          ? null
          : h(
              "span",
              { class: "earlier", title: "Built before: this line is the first to use them" },
              `+ ${grouped(earlier)} from before`,
            );
      const says = h("span", { class: "faint" }, count(asked, "operation"), before);
      return h(
        "button",
        { type: "button", class: "asking", title: "Select what this line built", onclick: choose },
        ...words,
        h("span", { class: "asked-track" }, bar),
        says,
      );
    });
    const rest =
      all.length > MOST_LINES ? h("p", { class: "faint" }, `and ${count(all.length - MOST_LINES, "more line")}`) : null;
    return h(
      "div",
      { class: "asked scroll", tabindex: 0, role: "group", "aria-label": "Lines of your Python" },
      ...rows,
      rest,
    );
  }

  /** Loops in loops, coloured by how each is walked, and what is done in them. */
  private nest(id: number): Element {
    const { index } = this.store;
    const kernel = index.trace.kernels[id];
    const nest = h("div", { class: "loops" });
    const open = [nest];
    for (const { depth, text, kind } of nestOf(index, kernel)) {
      const [, name, range] = /^for (\w+)( .*)$/.exec(text) ?? [];
      const made =
        kind === ""
          ? h("div", { class: "loop body" }, index.withNames(text, id))
          : h(
              "div",
              { class: `loop axis-${kind}` },
              h(
                "div",
                { class: "loop-head" },
                "for ",
                h("b", { class: `axis-${kind}` }, name),
                range,
                h("span", { class: "faint" }, ` ${kind} · ${AXIS_WORDS[kind] ?? ""}`),
              ),
            );
      open[depth].append(made);
      open.splice(depth + 1, open.length, made);
    }
    const opts = kernel.opts.map((opt) =>
      h("p", { class: "opt-said" }, h("span", { class: "chip" }, opt), optMeaning(opt).replace(`${opt}: `, "")),
    );
    return h(
      "div",
      { class: "nest scroll", tabindex: 0, role: "group", "aria-label": "Loops of the kernel" },
      nest,
      ...opts,
    );
  }

  private firing(id: number): Element {
    const { index } = this.store;
    const { trace } = index;
    const typical = typicalFiring(index, trace.kernels[id])!;
    const rule = trace.rules[typical.step.rule!];
    const cell = (line: TreeLine | null, cls: string): Element => {
      if (line === null) return h("div", { class: "cell none" });
      const mark = cls === "del" ? "−" : cls === "add" ? "+" : " ";
      const rest = line.folded > 0 ? ` + ${line.folded} below` : "";
      return h(
        "div",
        { class: `cell ${cls}` },
        h("span", { class: "sign" }, mark),
        h("span", { class: "faint" }, line.prefix),
        line.text,
        h("span", { class: "faint" }, rest),
      );
    };
    const cells = treeDiff(trace, typical.step.before, typical.step.after).flatMap(({ before, after, same }) => [
      cell(before, same ? "" : "del"),
      cell(after, same ? "" : "add"),
    ]);
    const heads = ["before", "after"].map((text) => h("div", { class: "cell head" }, text));
    return h(
      "div",
      { class: "fired scroll", tabindex: 0, role: "group", "aria-label": "Before and after" },
      h("h5", {}, rule.name),
      rule.law === "" ? null : h("div", { class: "law" }, rule.law),
      ...paragraphs(rule.doc)
        .slice(0, 1)
        .map(({ text }) => h("p", { class: "doc" }, text)),
      h("div", { class: "diff" }, h("div", { class: "pair" }, ...heads, ...cells)),
    );
  }

  destroy(): void {
    this.room.disconnect();
    this.shown?.destroy?.();
  }
}
