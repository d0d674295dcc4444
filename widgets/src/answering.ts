// A panel about one kernel that Python answers: the answer that a page keeps, else that of whoever has the engine. The
// last question counts; what comes late is dropped.

import type { Question } from "./asking";
import { h, replaceChildren } from "./dom";
import type { Store } from "./store";

export interface Wanted<Found> {
  question: Question;
  /** The answer, where it was given before the page was made. */
  kept: Found | undefined;
  /** What stands there until the first answer is there. */
  meanwhile: string;
  /** What to say where nobody answers, and what to call instead. */
  nobody: [text: string, code: string];
  show(found: Found): void;
  say(text: string, code?: string): void;
  /** It was refused, in words; it may be asked again. */
  refused(): void;
}

export class Answering {
  private asked = 0;

  constructor(
    private readonly store: Store,
    private readonly element: HTMLElement,
  ) {}

  async request<Found>({ question, kept, meanwhile, nobody, show, say, refused }: Wanted<Found>): Promise<void> {
    this.asked += 1;
    const mine = this.asked;
    await null; // a new view has its width once it stands in its place
    if (mine !== this.asked) return;
    if (kept !== undefined) return show(kept);
    if (this.store.ask === null) return say(...nobody);
    this.element.setAttribute("aria-busy", "true");
    if (this.element.childElementCount === 0) replaceChildren(this.element, note(meanwhile, "", "status"));
    try {
      const found = (await this.store.ask(question)) as Found;
      if (mine === this.asked) show(found);
    } catch (error) {
      if (mine !== this.asked) return;
      say(error instanceof Error ? error.message : String(error));
      refused();
    } finally {
      if (mine === this.asked) this.element.removeAttribute("aria-busy");
    }
  }
}

/** Words in the place of a view, with what to write in Python instead. */
export function note(text: string, code = "", role = "alert"): HTMLElement {
  return h("p", { class: "note", role }, text, code === "" ? null : h("code", {}, code));
}

/** The kernel whose program the chosen one runs. */
export function programKernel({ cursor, index }: Store): number {
  const number = cursor.kernel ?? 0;
  return index.trace.kernels[number]?.same_as ?? number;
}
