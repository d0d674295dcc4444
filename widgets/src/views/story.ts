// The story: seven pages, each with one idea, one sentence and a picture that changes step by step.

import { button, h, prefersReducedMotion, replaceChildren } from "../dom";
import type { Change, Store, View } from "../store";
import { type Chapter, type ChapterKey, listChapters } from "../story_chapters";
import type { MakePage, Page } from "../story/page";

const MOTION_MS = 750; // duration of one step, at normal speed
const SPEEDS = [0.5, 1, 2] as const;

export class StoryView implements View {
  readonly element = h("section", { class: "story", "aria-label": "Story" });
  readonly chapters: Chapter[];
  private readonly nav = h("nav", { class: "chapters", "aria-label": "Story pages" });
  private readonly sentence = h("p", { class: "sentence", role: "status" });
  private readonly picture = h("div", { class: "picture" });
  private readonly foot = h("div", { class: "turn" });
  private readonly played = new Set<ChapterKey>();
  private makePage: MakePage | null = null;
  private page: Page | null = null;
  private chapterIndex = 0;
  private step = 0;
  private speed = 1;
  private timer = 0;

  /** `leave`: goes to the workbench. `turned`: called when a page is opened. */
  constructor(
    private readonly store: Store,
    private readonly leave: () => void,
    private readonly turned: (key: string) => void,
    first: string | null = null,
  ) {
    this.chapters = listChapters(store.index);
    const start = this.chapters.findIndex(({ key }) => key === first);
    this.chapterIndex = Math.max(0, start);
    this.element.append(this.nav, this.sentence, this.picture, this.foot);
    this.room.observe(this.element);
  }

  /** Draws the page as soon as it has a size: a notebook inserts a view later. */
  private readonly room = new ResizeObserver(() => {
    if (this.element.clientWidth === 0) return;
    this.room.disconnect();
    void this.load();
  });

  /** Loads the pages, a chunk of their own in the document, which takes milliseconds. */
  private async load(): Promise<void> {
    this.drawNav();
    try {
      const { makePage, css = "" } = await this.store.chunks.load("story");
      if (!this.element.isConnected) return;
      this.element.prepend(h("style", {}, css));
      this.makePage = makePage!;
      this.enter();
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      replaceChildren(this.picture, h("p", { class: "note", role: "alert" }, text));
    }
  }

  update(change: Change): void {
    this.page?.update?.(change);
  }

  /** Goes one step forward (1) or back (-1), across pages; after the last one comes the workbench. */
  move(direction: 1 | -1): void {
    this.pause();
    const next = this.step + direction;
    if (this.page !== null && next >= 0 && next < this.page.count) this.showStep(next, true);
    else if (direction > 0) this.turn(1);
    else if (this.chapterIndex > 0) this.open(this.chapterIndex - 1, false, true);
  }

  /** Goes to the page after (1) or before (-1). */
  turn(direction: 1 | -1): void {
    if (this.chapterIndex + direction >= this.chapters.length) this.leave();
    else this.open(Math.max(0, this.chapterIndex + direction));
  }

  /** Plays the page from here, or pauses; at its end it starts again. */
  play(): void {
    if (this.page === null || this.page.count < 2) return;
    if (this.timer !== 0) this.pause();
    else {
      if (this.step >= this.page.count - 1) this.showStep(0, true);
      this.wait();
    }
    this.drawFoot();
  }

  private wait(): void {
    const page = this.page!;
    this.timer = window.setTimeout(() => {
      this.timer = 0;
      if (!this.element.isConnected || this.step >= page.count - 1) return this.drawFoot();
      this.showStep(this.step + 1, true);
      if (this.step < page.count - 1) this.wait();
      this.drawFoot();
    }, page.beat / this.speed);
  }

  private pause(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
  }

  get chapter(): string | null {
    return this.chapters[this.chapterIndex]?.key ?? null;
  }

  show(key: string): void {
    const chapterIndex = this.chapters.findIndex((chapter) => chapter.key === key);
    if (chapterIndex >= 0) this.open(chapterIndex, true);
  }

  private open(chapterIndex: number, silent = false, atEnd = false): void {
    if (chapterIndex === this.chapterIndex && this.page !== null) return;
    const hadFocus = this.element.contains(document.activeElement);
    this.chapterIndex = chapterIndex;
    this.enter(atEnd);
    if (hadFocus) this.element.closest<HTMLElement>(".tinyexplore")?.focus();
    if (!silent) this.turned(this.chapters[chapterIndex].key);
  }

  private enter(atEnd = false): void {
    const chapter = this.chapters[this.chapterIndex];
    if (chapter === undefined || this.makePage === null || !this.element.isConnected) return;
    this.pause();
    this.page?.destroy?.();
    this.store.go({ ...chapter.place, tabs: { ...this.store.cursor.tabs, ...chapter.place.tabs } }, true);
    this.page = this.make(chapter);
    this.element.dataset.chapter = chapter.key;
    replaceChildren(this.picture, this.page.element);
    this.step = atEnd ? this.page.count - 1 : 0;
    this.drawNav();
    this.showStep(this.step, false);
    const plays = !atEnd && chapter.key !== "time" && !this.played.has(chapter.key) && !prefersReducedMotion();
    this.played.add(chapter.key);
    if (plays && this.page.count > 1) this.wait();
    this.drawFoot();
  }

  private make(chapter: Chapter): Page {
    const open = (step: number): void => this.jump(step);
    const changed = (): void => this.showStep(Math.min(this.step, (this.page?.count ?? 1) - 1), false);
    return this.makePage!(chapter, this.store, open, changed);
  }

  private jump(step: number): void {
    this.pause();
    this.showStep(step, true);
  }

  private showStep(step: number, moves: boolean): void {
    const { page } = this;
    if (page === null) return;
    this.step = Math.max(0, Math.min(step, page.count - 1));
    page.show(this.step, moves && !prefersReducedMotion() ? MOTION_MS / this.speed : 0);
    replaceChildren(this.sentence, ...page.head(this.step));
    this.element.dataset.step = String(this.step);
    this.drawFoot();
  }

  private drawNav(): void {
    const marks = this.chapters.map((chapter, i) => {
      const mark = button(chapter.title, `Page ${i + 1}: ${chapter.about}`, () => this.open(i), "chapter");
      if (i === this.chapterIndex) mark.setAttribute("aria-current", "step");
      if (i < this.chapterIndex) mark.classList.add("read");
      return mark;
    });
    replaceChildren(this.nav, ...marks);
  }

  private drawFoot(): void {
    const { page } = this;
    if (page === null) return;
    const held = this.foot.contains(document.activeElement)
      ? (document.activeElement as HTMLElement).dataset.key
      : undefined;
    const next = this.chapters[this.chapterIndex + 1];
    const isLast = this.step >= page.count - 1;
    const back = button("← Back", "Previous step (←). Previous page: Shift ←", () => this.move(-1));
    back.disabled = this.chapterIndex === 0 && this.step === 0;
    const on = isLast ? (next === undefined ? "Workbench →" : `${next.title} →`) : "Next →";
    const forward = button(on, "Next step (→). Next page: Shift →", () => this.move(1), "next");
    const isPlaying = this.timer !== 0;
    const play = button(
      isPlaying ? "❚❚" : "▶",
      isPlaying ? "Pause (Space)" : "Play this page (Space)",
      () => this.play(),
      "play",
    );
    const dots = Array.from({ length: page.count }, (_, i) => {
      const dot = button(
        "",
        `Step ${i + 1}: ${page.caption(i)}`,
        () => this.jump(i),
        `step-dot${i <= this.step ? " on" : ""}`,
      );
      if (i === this.step) dot.setAttribute("aria-current", "step");
      dot.dataset.key = `dot ${i}`;
      return dot;
    });
    const options = SPEEDS.map((speed) => {
      const option = h("option", { value: speed }, `${speed === 0.5 ? "½" : speed}×`);
      option.selected = speed === this.speed;
      return option;
    });
    const speed = h("select", { class: "speed", "aria-label": "Speed", "data-key": "speed" }, ...options);
    speed.addEventListener("change", () => {
      this.speed = Number(speed.value);
    });
    Object.assign(back.dataset, { key: "back" });
    Object.assign(forward.dataset, { key: "next" });
    Object.assign(play.dataset, { key: "play" });
    const caption = h(
      "span",
      { class: "caption faint" },
      `${this.step + 1} of ${page.count} · ${page.caption(this.step)}`,
    );
    const middle = page.count > 1 ? [play, h("span", { class: "step-dots" }, ...dots), speed] : [];
    replaceChildren(this.foot, back, h("div", { class: "player" }, ...middle, caption), forward);
    if (held !== undefined)
      this.foot.querySelector<HTMLElement>(`[data-key="${held}"]`)?.focus({ preventScroll: true });
  }

  destroy(): void {
    this.pause();
    this.room.disconnect();
    this.page?.destroy?.();
  }
}
