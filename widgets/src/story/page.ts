// What a page of the story is, and what several pages share.

import { type Child, h } from "../dom";
import type { Change, Store } from "../store";
import type { Chapter } from "../story";

/** One idea, in steps. The shell draws the sentence over it and the controls under it. */
export interface Page {
  readonly element: HTMLElement;
  /** How many steps it has; it may grow when a response arrives, and the page then calls `changed`. */
  readonly count: number;
  /** How long a step stands when the page plays, in milliseconds at normal speed. */
  readonly beat: number;
  /** Draws a step; `ms`: how long the change takes, 0 for at once. */
  show(step: number, ms: number): void;
  /** The sentence over the picture. */
  head(step: number): Child[];
  /** What the step shows, in a few words. */
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

/** "a, b and c". */
export function listed(parts: readonly string[]): string {
  return parts.length < 2 ? (parts[0] ?? "") : `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1]}`;
}

/** The room inside an element, without its padding. */
export function roomOf(element: HTMLElement): { width: number; height: number } {
  const style = getComputedStyle(element);
  const across = Number.parseFloat(style.paddingLeft) + Number.parseFloat(style.paddingRight);
  const down = Number.parseFloat(style.paddingTop) + Number.parseFloat(style.paddingBottom);
  return { width: element.clientWidth - across, height: element.clientHeight - down };
}

/** Hues for expressions, kernels and kinds of lines, in order. */
export const TONES = ["memory", "loop", "movement", "reduce", "alu"] as const;

export function tone(i: number): string {
  return `tone-${TONES[i % TONES.length]}`;
}

/** Makes the page of a chapter. `open`: shows a step of it; `changed`: what it says, or how many steps it has, is other now. */
export type MakePage = (chapter: Chapter, store: Store, open: (step: number) => void, changed: () => void) => Page;
