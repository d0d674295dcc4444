// A panel about one kernel whose data Python computes: the stored response of a page, else a response of the engine.
// Only the
// last request counts; earlier responses that arrive late are dropped.

import type { Question, Response } from "./asking";
import { h, replaceChildren } from "./dom";
import type { Store } from "./store";

export interface Wanted<Q extends Question> {
  question: Q;
  /** The text until the first response arrives. */
  meanwhile: string;
  /** The text without an engine, and the call to make instead. */
  nobody: [text: string, code: string];
  show(found: Response<Q>): void;
  say(text: string, code?: string): void;
  /** Called after an error response; the request may be repeated. */
  refused(): void;
}

export class Answering {
  private asked = 0;

  constructor(
    private readonly store: Store,
    private readonly element: HTMLElement,
  ) {}

  async request<Q extends Question>(wanted: Wanted<Q>): Promise<void> {
    const { question, meanwhile, nobody, show, say, refused } = wanted;
    this.asked += 1;
    const mine = this.asked;
    await null; // a new view has a width only after it is attached
    if (mine !== this.asked) return;
    const stored = this.store.responses.get(question);
    if (stored !== undefined) return show(stored);
    if (this.store.ask === null) return say(...nobody);
    this.element.setAttribute("aria-busy", "true");
    if (this.element.childElementCount === 0) replaceChildren(this.element, note(meanwhile, "", "status"));
    try {
      const response = await this.store.ask(question);
      if (mine === this.asked) show(response);
    } catch (error) {
      if (mine !== this.asked) return;
      say(error instanceof Error ? error.message : String(error));
      refused();
    } finally {
      if (mine === this.asked) this.element.removeAttribute("aria-busy");
    }
  }
}

/** Creates a text in the place of a view, with the Python code to use instead. */
export function note(text: string, code = "", role = "alert"): HTMLElement {
  return h("p", { class: "note", role }, text, code === "" ? null : h("code", {}, code));
}

/** Returns the kernel whose program the selected kernel runs. */
export function programKernel({ cursor, index }: Store): number {
  const number = cursor.kernel ?? 0;
  return index.trace.kernels[number]?.same_as ?? number;
}
