// Helpers that create HTML and SVG elements; text never passes through an HTML parser.

type Attributes = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;
export type Child = Element | string | null | undefined | false;

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
}

export function append(element: Element, children: Child[]): void {
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) element.append(child);
  }
}

/** Creates an HTML element: `h("button", {class: "x", onclick: f}, "text")`. */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  // tags give sizes; for screen readers, all are sections below the heading of the page
  if (/^h[3-6]$/.test(tag)) element.setAttribute("aria-level", "2");
  fill(element, attributes, children);
  return element;
}

/** Creates an SVG element. */
export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

export function replaceChildren(element: Element, ...children: Child[]): void {
  element.replaceChildren();
  append(element, children);
}

/** Limits calls of `run` to one per frame, with the last arguments. */
export function oncePerFrame<A extends unknown[]>(run: (...args: A) => void): (...args: A) => void {
  let waiting: A | null = null;
  return (...args: A) => {
    const idle = waiting === null;
    waiting = args;
    if (!idle) return;
    requestAnimationFrame(() => {
      const last = waiting!;
      waiting = null;
      run(...last);
    });
  };
}

export function prefersReducedMotion(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

/** Creates a button with an accessible name (its text) and description (its title). */
export function button(text: string, title: string, onclick: () => void, cls = ""): HTMLButtonElement {
  const isWords = /\p{L}|\d/u.test(text);
  return h("button", { type: "button", class: cls, title, "aria-label": isWords ? null : title, onclick }, text);
}

/** Creates a row of tabs; arrow keys move between them, as screen readers expect. */
export function tabList(label: string, ...tabs: HTMLElement[]): HTMLElement {
  const list = h("div", { class: "tabs", role: "tablist", "aria-label": label }, ...tabs);
  list.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    const all = [...list.querySelectorAll<HTMLElement>('[role="tab"]')];
    const active = all.indexOf(document.activeElement as HTMLElement);
    const next = all[(active + step + all.length) % all.length];
    if (active < 0 || !next) return;
    event.stopPropagation();
    event.preventDefault();
    const key = next.dataset.key;
    next.click();
    list.querySelector<HTMLElement>(`[data-key="${CSS.escape(key ?? "")}"]`)?.focus();
  });
  return list;
}

export function tab(key: string, text: string, active: boolean, onclick: () => void, title = text): HTMLElement {
  const attributes = { type: "button", role: "tab", class: "tab", title, "data-key": key, onclick };
  return h("button", { ...attributes, "aria-selected": String(active), tabindex: active ? 0 : -1 }, text);
}
