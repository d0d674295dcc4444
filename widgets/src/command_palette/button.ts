// The button and the key that open the box "Go to"; the box is loaded on first use.

import { button, h } from "../dom";
import type { Reach } from "./entries";

export class CommandPaletteButton {
  readonly button = button(
    "Go to",
    "Panels, actions, kernels, passes, rules, operations and opcodes by name (G)",
    () => void this.toggle(),
    "go-to",
  );
  private close: (() => void) | null = null;

  constructor(private readonly reach: Reach) {
    this.button.setAttribute("aria-haspopup", "dialog");
    // an open box keeps the focus until it is closed
    this.button.addEventListener("mousedown", (event) => event.preventDefault());
  }

  /** Opens or closes the box. */
  async toggle(): Promise<void> {
    if (this.close !== null) return this.close();
    const { store, root } = this.reach;
    try {
      const [{ openBox, css }, words] = await Promise.all([
        store.chunks.load("command_palette"),
        store.chunks.load("opcodes"),
      ]);
      if (this.close !== null || !root.isConnected) return; // toggled twice, or removed meanwhile
      if (root.querySelector("style[data-chunk=command_palette]") === null)
        root.firstElementChild!.after(h("style", { "data-chunk": "command_palette" }, css!));
      this.close = openBox!(this.reach, words.explain!, () => (this.close = null));
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      root.querySelector("header")!.after(h("div", { class: "message error", role: "alert" }, text));
    }
  }
}
