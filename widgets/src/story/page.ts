// The interface of a page of the story, and helpers that several pages share.

import { type Child, h } from "../dom";
import type { Change, Store } from "../store";
import type { Chapter } from "../story_chapters";

/** One idea, in steps. The shell draws the sentence above it and the controls below it. */
export interface Page {
  readonly element: HTMLElement;
  /** The number of steps. It may grow when a response arrives; the page then calls `changed`. */
  readonly count: number;
  /** The time of a step during playback, in milliseconds at normal speed. */
  readonly beat: number;
  /** Draws a step. `ms`: the duration of the transition, 0 for none. */
  show(step: number, ms: number): void;
  /** Returns the sentence above the picture. */
  head(step: number): Child[];
  /** Returns a short description of the step. */
  caption(step: number): string;
  update?(change: Change): void;
  destroy?(): void;
}

export function bold(text: string): HTMLElement {
  return h("b", {}, text);
}

export function code(text: string): HTMLElement {
  return h("code", {}, text);
}

/** Returns a list as text: "a, b and c". */
export function joinList(parts: readonly string[]): string {
  return parts.length < 2 ? (parts[0] ?? "") : `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1]}`;
}

/** Returns the space inside an element, without its padding. */
export function measureCanvas(element: HTMLElement): { width: number; height: number } {
  const style = getComputedStyle(element);
  const across = Number.parseFloat(style.paddingLeft) + Number.parseFloat(style.paddingRight);
  const down = Number.parseFloat(style.paddingTop) + Number.parseFloat(style.paddingBottom);
  return { width: element.clientWidth - across, height: element.clientHeight - down };
}

/** The hues of expressions, kernels and kinds of lines, in order. */
export const TONES = ["memory", "loop", "movement", "reduce", "alu"] as const;

export function toneClass(i: number): string {
  return `tone-${TONES[i % TONES.length]}`;
}

/**
 * Creates the page of a chapter. `open`: shows a step of it. `changed`: called when its text or number of steps
 * changes.
 */
export type MakePage = (chapter: Chapter, store: Store, open: (step: number) => void, changed: () => void) => Page;
