// Copies text to the clipboard; a button that does so.

import { button, h, s } from "./dom";

export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // pages opened from a file have no clipboard API; the older API needs a selected text field
    const field = h("textarea", { style: "position:fixed;opacity:0" });
    field.value = text;
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done;
  }
}

/** Saves text as a file, like a download. */
export function saveFile(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
  const link = h("a", { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}

/** Creates a button with an icon; a click copies the current result of `text` and confirms it. */
export function copyButton(title: string, text: () => string | Promise<string>): HTMLElement {
  const iconButton = button("", title, () => void copy(), "quiet copy");
  const copy = async (): Promise<void> => {
    iconButton.dataset.said = (await copyText(await text())) ? "copied" : "not allowed";
    setTimeout(() => delete iconButton.dataset.said, 1400);
  };
  const sheet = (x: number, y: number): SVGElement => s("rect", { x, y, width: 7, height: 8.5, rx: 1.2 });
  iconButton.append(
    s("svg", { viewBox: "0 0 13 13", width: 13, height: 13, "aria-hidden": "true" }, sheet(1, 1), sheet(4.5, 3.5)),
  );
  return iconButton;
}
