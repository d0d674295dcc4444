// Python's work for a view: its progress as text, and a button that cancels it.

import { button, h } from "./dom";
import type { WhatIf, Progress } from "./what_if";

export function makeProgress(whatIf: WhatIf, { text, done, of, cancel }: Progress): HTMLElement[] {
  const bar = h("progress", of > 0 ? { max: of, value: done, "aria-label": text } : { "aria-label": text });
  const words = h("span", {}, of > 0 ? `${text} · ${Math.round(done)} of ${of}` : text);
  if (!cancel) return [bar, words];
  return [
    bar,
    words,
    button("Cancel", "Stops the command. The results of a search so far are stored", () => whatIf.cancel()),
  ];
}
