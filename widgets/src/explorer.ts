// mount(): the whole explorer in one element, from a trace; knows nothing of Jupyter or of how the trace came.

import css from "./style.css";
import { divider } from "./divider";
import { append, h, replaceChildren, tab, tabList } from "./dom";
import { meaning } from "./explaining";
import { summary } from "./figures";
import { bytes } from "./format";
import type { Trace } from "./model";
import { TraceIndex } from "./provenance";
import { type Cursor, type Panel, Store } from "./store";
import { BiographyView } from "./views/biography";
import { CodeView } from "./views/code";
import { GlossaryView } from "./views/glossary";
import { GraphView } from "./views/graph";
import { KernelsView } from "./views/kernels";
import { showOrigin } from "./views/nodecard";
import { PipelineView } from "./views/pipeline";
import { StepperView } from "./views/stepper";
import { MemoryView, TimingView } from "./views/timing";
import { beginning } from "./walking";

export interface MountOptions {
  /** Nodes selected and place shown at first. */
  initial?: { selected?: number[]; cursor?: Partial<Cursor> };
  onSelect?: (nodes: number[]) => void;
  onCursor?: (cursor: Cursor) => void;
  theme?: "light" | "dark" | "auto";
  /** CSS height; "100vh" for a page of its own. */
  height?: string;
  /** The explorer is the whole page: a wheel over the graph may zoom at once. */
  page?: boolean;
  /** Bytes of the payload, for the footer. */
  size?: number;
}

export interface Handle {
  select(nodes: number[]): void;
  go(cursor: Partial<Cursor>): void;
  readonly state: { selected: number[]; related: number[]; cursor: Cursor };
  destroy(): void;
}

const LARGE_BYTES = 1_000_000;
const PANELS: [Panel, string][] = [
  ["rewrites", "Rewrites"],
  ["kernels", "Kernels"],
  ["timing", "Timing"],
  ["memory", "Memory"],
  ["biography", "Biography"],
  ["glossary", "Glossary"],
];

export function mount(element: HTMLElement, trace: Trace, options: MountOptions = {}): Handle {
  const index = new TraceIndex(trace);
  const store = new Store(index, firstCursor(index));
  if (options.initial?.cursor) store.go(options.initial.cursor, true);
  const root = h("div", {
    class: "tinyexplore",
    tabindex: 0,
    role: "application",
    "aria-label": `Compiler explorer: ${trace.title}`,
    "data-lm-suppress-shortcuts": "true", // the notebook's own keys stay out of here
    "data-page": options.page ?? null,
    style: options.height ? `--height:${options.height}` : null,
  });
  const graph = new GraphView(store);
  const stepper = new StepperView(store);
  const code = new CodeView(store);
  const pipeline = new PipelineView(store);
  const panels: Record<Panel, { element: HTMLElement }> = {
    rewrites: stepper,
    kernels: new KernelsView(store),
    timing: new TimingView(store),
    memory: new MemoryView(store),
    biography: new BiographyView(store),
    glossary: new GlossaryView(),
  };
  const views = [pipeline, graph, code, stepper, panels.kernels, panels.timing, panels.memory, panels.biography];
  for (const view of views) store.add(view as GraphView);

  const tabs = h("div", { class: "panel-tabs" });
  const drawTabs = (): void => {
    const { panel } = store.cursor;
    const all = PANELS.map(([key, title]) => tab(key, title, key === panel, () => store.go({ panel: key })));
    replaceChildren(tabs, tabList("Panels", ...all));
    for (const [key] of PANELS) panels[key].element.hidden = key !== panel;
  };
  let place = store.cursor.place;
  store.add({
    element: tabs,
    update: (change) => {
      if (!change.cursor) return;
      drawTabs();
      if (place !== store.cursor.place) code.showPlace();
      place = store.cursor.place;
    },
  });
  drawTabs();

  const main = h("div", { class: "main" }, graph.element, divider(root, "--split", "x"), code.element);
  const low = h("div", { class: "low" }, tabs, ...PANELS.map(([key]) => panels[key].element));
  append(root, [
    h("style", {}, css),
    header(trace),
    banner(trace, store),
    pipeline.element,
    main,
    divider(root, "--low", "y"),
    low,
    footer(index, options.size ?? 0),
  ]);
  const stopTheme = followTheme(root, options.theme ?? "auto");
  const sizes = new ResizeObserver(([entry]) => {
    const { width } = entry.contentRect;
    root.dataset.width = width < 900 ? "narrow" : width < 1120 ? "medium" : "wide";
  });
  sizes.observe(root);
  root.addEventListener("keydown", (event) => onKey(event, { store, graph, stepper, root }));
  element.append(root);

  if (options.initial?.selected) store.select(options.initial.selected, true);
  store.onSelect = options.onSelect ?? null;
  store.onCursor = options.onCursor ?? null;
  return {
    select: (nodes) => store.select(nodes, true),
    go: (cursor) => store.go(cursor, true),
    get state() {
      return { selected: [...store.selected], related: [...store.related], cursor: store.cursor };
    },
    destroy: () => {
      stopTheme();
      sizes.disconnect();
      store.destroy();
      root.remove();
    },
  };
}

/** Where the story begins: the tensors, and the scheduler's first word on them. */
function firstCursor(index: TraceIndex): Cursor {
  const { trace } = index;
  const first = beginning(trace.stages);
  const hasTensors = trace.nodes.some((node) => node.kind === "lazybuffer");
  return {
    place: hasTensors ? "lazy" : "passes",
    kernel: trace.kernels.length > 0 ? 0 : null,
    stage: first?.stage ?? null,
    step: first?.step ?? 0,
    graph: hasTensors ? "lazy" : "uops",
    panel: "rewrites",
    tabs: {},
  };
}

function header(trace: Trace): HTMLElement {
  const chips = trace.options.map(([name, value]) =>
    h("span", { class: "chip", title: [`${name} = ${value}`, meaning("option", name)].filter(Boolean).join("\n") }, h("span", { class: "faint" }, `${name} `), value),
  );
  return h("header", {}, h("b", { class: "name" }, trace.title), h("span", { class: "chips" }, ...chips));
}

function banner(trace: Trace, store: Store): HTMLElement | null {
  if (trace.messages.length === 0) return null;
  const rows = trace.messages.map(({ level, text, frame }) => {
    const at = frame === null ? undefined : trace.frames[frame];
    const show = (): void => store.select(store.index.nodesOfLine(at!.source, at!.line));
    const name = at ? `${trace.sources[at.source]?.name ?? "?"}:${at.line}` : "";
    const link = at ? h("button", { type: "button", class: "quiet", onclick: show }, name) : null;
    return h("div", { class: `message ${level}`, role: level === "error" ? "alert" : "status" }, h("b", {}, level), h("span", {}, text), link);
  });
  return h("div", { class: "banner" }, ...rows);
}

function footer(index: TraceIndex, size: number): HTMLElement {
  const { trace } = index;
  const key = (keys: string[], text: string): Element => h("span", { class: "key" }, ...keys.map((name) => h("kbd", {}, name)), ` ${text}`);
  const large = size > LARGE_BYTES ? " (large: the notebook stores it whole)" : "";
  const facts = [
    ...summary(trace),
    size > 0 ? `trace ${bytes(size)}${large}` : "",
  ].filter(Boolean);
  const keys = (): Element[] => [
    key(["←", "→"], "step"),
    key(["↑", "↓"], "pass"),
    key(["⇧ arrows"], "walk the graph"),
    key(["/"], "search"),
    key(["O"], "origin"),
    key(["B"], "biography"),
    key(["I"], "isolate"),
    key(["F"], "fit"),
  ];
  return h(
    "footer",
    {},
    ...keys(),
    h("details", { class: "keys-menu" }, h("summary", {}, "keys"), h("div", {}, ...keys())), // where they have no room
    h("span", { class: "space" }),
    h("span", { class: size > LARGE_BYTES ? "facts large" : "facts", title: facts.join(" · ") }, facts.join(" · ")),
  );
}

interface KeyTargets {
  store: Store;
  graph: GraphView;
  stepper: StepperView;
  root: HTMLElement;
}

function onKey(event: KeyboardEvent, { store, graph, stepper, root }: KeyTargets): void {
  const target = event.composedPath()[0] as HTMLElement;
  const typing = target instanceof HTMLInputElement && !["checkbox", "range"].includes(target.type);
  event.stopPropagation();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const pressed = (target instanceof HTMLButtonElement || target instanceof HTMLInputElement) && [" ", "Enter"].includes(event.key);
  if (pressed) return;
  const walks: Record<string, "up" | "down" | "left" | "right"> = {
    ArrowUp: "up",
    ArrowDown: "down",
    ArrowLeft: "left",
    ArrowRight: "right",
  };
  const actions: Record<string, () => void> = {
    ArrowLeft: () => stepper.move(-1),
    ArrowRight: () => stepper.move(1),
    ArrowUp: () => stepper.movePass(-1),
    ArrowDown: () => stepper.movePass(1),
    Home: () => stepper.moveToEnd(false),
    End: () => stepper.moveToEnd(true),
    "/": () => graph.focusSearch(),
    o: () => showOrigin(store),
    b: () => store.go({ panel: store.cursor.panel === "biography" ? "rewrites" : "biography" }),
    i: () => graph.isolate(),
    f: () => graph.fit(),
    n: () => stepper.nextOnNode(),
    r: () => stepper.nextOfRule(),
    e: () => graph.toggleSelected(),
    Escape: () => {
      store.select([]);
      root.focus();
    },
  };
  const walk = walks[event.key];
  const action = event.shiftKey && walk ? () => graph.walk(walk) : actions[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (action === undefined) return;
  event.preventDefault();
  action();
}

/** Light or dark: as told, as JupyterLab or VS Code say, else as the system prefers. Returns how to stop following. */
function followTheme(root: HTMLElement, theme: "light" | "dark" | "auto"): () => void {
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  const apply = (): void => {
    const { body } = document;
    const jupyter = body.dataset.jpThemeLight;
    let dark = prefers.matches;
    if (theme !== "auto") dark = theme === "dark";
    else if (jupyter !== undefined) dark = jupyter === "false";
    else if (body.classList.contains("vscode-dark") || document.documentElement.classList.contains("dark")) dark = true;
    else if (body.classList.contains("vscode-light")) dark = false;
    root.dataset.theme = dark ? "dark" : "light";
  };
  apply();
  prefers.addEventListener("change", apply);
  const watcher = new MutationObserver(apply);
  watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "class"] });
  watcher.observe(document.documentElement, { attributes: true, attributeFilter: ["class"] });
  return () => {
    prefers.removeEventListener("change", apply);
    watcher.disconnect();
  };
}
