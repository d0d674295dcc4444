// A panel about one kernel whose data Python computes: the stored response of a page, else a response of the engine.
// Only the last request counts; earlier responses that arrive late are dropped.

import type { Question, Response } from "./request_channel";
import { h, replaceChildren } from "./dom";
import type { Store } from "./store";

export interface PanelRequest<Q extends Question> {
  request: Q;
  /** The text until the first response arrives. */
  pendingText: string;
  /** The text without an engine, and the call to make instead. */
  offlineNote: [text: string, code: string];
  show(found: Response<Q>): void;
  showNote(text: string, code?: string): void;
  /** Called after an error response; the request may be repeated. */
  onError(): void;
}

export class LatestRequest {
  private newest = 0;

  constructor(
    private readonly store: Store,
    private readonly element: HTMLElement,
  ) {}

  async send<Q extends Question>(wanted: PanelRequest<Q>): Promise<void> {
    const { request, pendingText, offlineNote, show, showNote, onError } = wanted;
    this.newest += 1;
    const mine = this.newest;
    await null; // a new view has a width only after it is attached
    if (mine !== this.newest) return;
    const stored = this.store.responses.get(request);
    if (stored !== undefined) return show(stored);
    if (this.store.sendRequest === null) return showNote(...offlineNote);
    this.element.setAttribute("aria-busy", "true");
    if (this.element.childElementCount === 0) replaceChildren(this.element, makeNote(pendingText, "", "status"));
    try {
      const response = await this.store.sendRequest(request);
      if (mine === this.newest) show(response);
    } catch (error) {
      if (mine !== this.newest) return;
      showNote(error instanceof Error ? error.message : String(error));
      onError();
    } finally {
      if (mine === this.newest) this.element.removeAttribute("aria-busy");
    }
  }
}

/** Creates a text in the place of a view, with the Python code to use instead. */
export function makeNote(text: string, code = "", role = "alert"): HTMLElement {
  return h("p", { class: "note", role }, text, code === "" ? null : h("code", {}, code));
}

/** Returns the kernel whose program the selected kernel runs. */
export function findProgramKernel({ cursor, index }: Store): number {
  const number = cursor.kernel ?? 0;
  return index.trace.kernels[number]?.same_as ?? number;
}
