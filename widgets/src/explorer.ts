// mount(): the whole explorer in one element, from a trace; independent of Jupyter and of the origin of the trace.

import { isTensor } from "./dialect";
import { type SendRequest, StoredResponses } from "./request_channel";
import { applySizes, makeDivider } from "./divider";
import { append, button, h, s } from "./dom";
import { type Engine, connectEngine } from "./engine";
import { findMeaning } from "./term_meanings";
import { CommandPaletteButton } from "./command_palette/button";
import { bytes } from "./format";
import type { LazyView } from "./lazy_view";
import { linkTooltips } from "./glossary_tooltips";
import { PositionHistory, completeCursor, linkOf, readLink } from "./links";
import type { Trace } from "./model";
import { TraceIndex } from "./trace_index";
import { type Theme, fullScreen, makeShell, handleKey } from "./shell";
import { type Cursor, PANELS, type Panel, Store, type View } from "./store";
import { PANEL_ROWS } from "./panel_rows";
import { type DeferredView, makePanel } from "./panels";
import { CodeView } from "./views/code";
import { GraphView } from "./views/graph";
import { PanelTabs } from "./views/panel_tabs";
import { PipelineView } from "./views/pipeline";
import { listChapters, findSlowest } from "./story_chapters";
import type { StepperView } from "./views/stepper";
import { StoryView } from "./views/story";
import { type TourStop, TourView } from "./views/tour";
import { findBeginning } from "./step_navigation";

export interface MountOptions {
  /** The responses that a page stores, by canonical request. */
  responses?: Record<string, unknown>;
  /** The initial selection and position. */
  initial?: { selected?: number[]; cursor?: Partial<Cursor> };
  onSelect?: (nodes: number[]) => void;
  onCursor?: (cursor: Cursor) => void;
  theme?: Theme;
  /** CSS height; "100vh" for a page of its own. */
  height?: string;
  /** Whether the explorer is the whole page, so that the wheel over the graph zooms immediately. */
  page?: boolean;
  /** The bytes of the payload, for the footer. */
  size?: number;
  /** The initial mode; by default the user's last choice in this page, at first the story. */
  mode?: Mode;
  onMode?: (mode: Mode) => void;
  /** Notes on positions, for a tour. */
  tour?: TourStop[];
  /** Sends requests that the trace alone cannot satisfy. */
  ask?: SendRequest;
  /** Adds content to the panel of times. */
  runHere?: Store["runHere"];
  /** The engine of a page with engine: it responds to requests and runs commands. */
  engine?: Engine;
  /** Returns to the place from which this explorer was opened. */
  back?: () => void;
  /** Whether the header shows the engine's badge (the page may show it elsewhere). */
  badge?: boolean;
}

/** Stage by stage, or all views together. */
export type Mode = "story" | "workbench";

export interface Handle {
  select(nodes: number[]): void;
  /** Goes to a position; resolves after its panel's code is loaded and shown. So do `show` and `open`. */
  go(cursor: Partial<Cursor>): Promise<void>;
  /** Switches between the story and the workbench. */
  show(mode: Mode): Promise<void>;
  /** Goes to the position of a link: `#stage=4&step=2&node=17`. */
  open(link: string): Promise<void>;
  /** Starts a tour of these stops. */
  tour(stops: TourStop[]): void;
  /** Resolves when all visible views are drawn. */
  readonly ready: Promise<void>;
  readonly mode: Mode;
  readonly link: string;
  readonly state: { selected: number[]; related: number[]; cursor: Cursor };
  destroy(): void;
}

const LARGE_BYTES = 1_000_000;

/** Creates the store of a trace, at the default position or at `initial`. */
export function openStore(trace: Trace, initial: MountOptions["initial"] = {}): Store {
  const index = new TraceIndex(trace);
  const store = new Store(index, chooseCursor(index));
  if (initial.cursor) store.go(initial.cursor, true);
  if (initial.selected) store.select(initial.selected, true);
  return store;
}

/** Creates an explorer with its own store. */
export function mount(element: HTMLElement, trace: Trace, options: MountOptions = {}): Handle {
  const store = openStore(trace, options.initial);
  store.onSelect = options.onSelect ?? null;
  store.onCursor = options.onCursor ?? null;
  store.responses = new StoredResponses(options.responses);
  store.runHere = options.runHere ?? null;
  store.sendRequest = options.ask ?? options.engine?.ask ?? null;
  if (options.engine !== undefined) connectEngine(store.index, options.engine);
  return mountOn(element, store, options);
}

/** Creates an explorer on a store that other views may share. */
export function mountOn(element: HTMLElement, store: Store, options: MountOptions = {}): Handle {
  const { index } = store;
  const { trace } = index;
  const { root, release } = makeShell(`Compiler explorer: ${trace.title}`, options.height, options.theme ?? "auto");
  if (options.page) root.dataset.page = "true";
  applySizes(root);
  const linked = options.page ? readLink(location.hash) : null;
  let chapter: string | null = linked?.story ?? null;
  let mode: Mode =
    linked !== null
      ? linked.story === null
        ? "workbench"
        : "story"
      : (options.mode ?? readMode(options.page) ?? chooseMode(store));
  if (listChapters(index).length < 2) mode = "workbench";
  let body: Body | null = null;
  let tour: TourView | null = null;

  const draw = (): void => {
    body?.destroy();
    root.dataset.mode = mode;
    const turned = (key: string): void => {
      chapter = key;
      trail.visit();
    };
    const leave = (): void => choose("workbench");
    body = mode === "story" ? makeStory(store, leave, turned, chapter) : makeWorkbench(store, root, options.size ?? 0);
    root.append(...body.elements);
    choices.update(mode);
  };
  const choose = (next: Mode): void => {
    if (options.page) saveMode(next); // a notebook's model keeps the mode of its own view
    void handle.show(next);
    options.onMode?.(next);
    root.focus({ preventScroll: true });
  };
  const handle: Handle = {
    select: (nodes) => store.select(nodes, true),
    go: (cursor) => {
      store.go(cursor, true);
      return handle.ready;
    },
    show: (next) => {
      if (next === mode) return handle.ready;
      mode = next;
      draw();
      trail.visit();
      return handle.ready;
    },
    open: (link) => {
      const target = readLink(link);
      if (target === null) return handle.ready;
      store.go(completeCursor(index, target.cursor));
      store.select(target.selected ?? []);
      if (target.story !== null) chapter = target.story;
      void handle.show(target.story === null ? "workbench" : "story");
      if (target.story !== null) body?.story?.show(target.story);
      return handle.ready;
    },
    tour: (stops) => {
      tour?.element.remove();
      tour = stops.length === 0 ? null : new TourView(stops, (link) => handle.open(link));
      if (tour === null) return;
      head.after(tour.element);
      tour.go(0);
    },
    get ready() {
      return body?.ready() ?? Promise.resolve();
    },
    get mode() {
      return mode;
    },
    get link() {
      return linkOf(
        store.cursor,
        [...store.selected],
        mode === "story" ? (body?.story?.chapter ?? chapter ?? "python") : null,
      );
    },
    get state() {
      return { selected: [...store.selected], related: [...store.related], cursor: store.cursor };
    },
    destroy: () => {
      trail.stop();
      body?.destroy();
      store.drop([follower]);
      release();
    },
  };
  store.openWorkbench = () => void handle.show("workbench");
  const choices = makeModeChoice(choose);
  const going = new CommandPaletteButton({
    store,
    root,
    openWorkbench: () => handle.show("workbench"),
    open: (link) => handle.open(link),
    find: (query) => body?.graph?.finder.searchFor(query),
  });
  const head = makeHeader(
    trace,
    options.badge === false ? [] : listEngineParts(options.engine),
    choices.element,
    options.back,
    going.button,
    makeFullScreenButton(root),
  );
  append(root, [head, makeBanner(trace, store)]);
  element.append(root);
  if (linked !== null) {
    store.go(completeCursor(index, linked.cursor));
    if (linked.selected !== null) store.select(linked.selected);
  }
  const trail = new PositionHistory(
    options.page ?? false,
    (link) => handle.open(link),
    () => handle.link,
  );
  const follower: View = {
    element: root,
    update: (change) => {
      if ((change.cursor || change.selection) && mode === "workbench") trail.visit();
    },
  };
  store.add(follower);
  draw();
  if (options.tour !== undefined && linked === null) handle.tour(options.tour);
  linkTooltips(root, store, () => handle.show("workbench"));
  root.addEventListener("keydown", (event) => {
    if (tour !== null && (event.key === "[" || event.key === "]")) {
      event.stopPropagation();
      tour.move(event.key === "]" ? 1 : -1);
      return;
    }
    if (event.altKey && !options.page && ["ArrowLeft", "ArrowRight"].includes(event.key)) {
      event.preventDefault();
      event.stopPropagation();
      trail.go(event.key === "ArrowLeft" ? -1 : 1);
    } else if (body !== null)
      handleKey(event, {
        store,
        root,
        ...body,
        panels: body.story === null,
        goTo: () => going.toggle(),
        toggle: () => choose(mode === "story" ? "workbench" : "story"),
      });
  });
  return handle;
}

function makeFullScreenButton(root: HTMLElement): HTMLElement {
  const fullButton = button("", "Full screen, or back (Z)", () => fullScreen(root), "quiet");
  const corners = { d: "M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4", fill: "none", stroke: "currentColor" };
  fullButton.append(
    s("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true" }, s("path", corners)),
  );
  return fullButton;
}

/** The content below the header: the story, or the workbench. */
interface Body {
  elements: Element[];
  story: StoryView | null;
  graph: GraphView | null;
  stepper: (() => StepperView) | null;
  /** Toggles whether the panel replaces the graph and the code. */
  fill: (() => void) | null;
  ready(): Promise<void>;
  destroy(): void;
}

function makeStory(store: Store, leave: () => void, turned: (key: string) => void, first: string | null): Body {
  const story = new StoryView(store, leave, turned, first);
  store.add(story);
  const destroy = (): void => {
    store.drop([story]);
    story.element.remove();
  };
  return {
    elements: [story.element],
    story,
    graph: null,
    stepper: null,
    fill: null,
    ready: () => Promise.resolve(),
    destroy,
  };
}

function makeWorkbench(store: Store, root: HTMLElement, size: number): Body {
  const graph = new GraphView(store);
  const code = new CodeView(store);
  const pipeline = new PipelineView(store);
  const panelViews = PANELS.map((key) => [key, makePanel(store, key, () => store.cursor.panel === key)] as const);
  const panels = Object.fromEntries(panelViews) as Record<Panel, View>;
  const tabs = new PanelTabs(store, root);
  const main = h(
    "div",
    { class: "main" },
    graph.element,
    makeDivider(root, () => "--split", "x"),
    code.element,
  );
  const findGraph = (): void => {
    main.classList.toggle("no-graph", graph.graphs.graphAt(store.cursor).graph.nodes.size === 0);
  };
  const chooser: View = {
    element: main,
    update: ({ cursor }) => {
      if (cursor) findGraph();
    },
  };
  findGraph();
  const views = [chooser, pipeline, graph, code, tabs, ...Object.values(panels)];
  for (const view of views) store.add(view);

  const showPanel = (): void => {
    const { panel } = store.cursor;
    for (const key of PANELS) panels[key].element.hidden = key !== panel;
    root.dataset.panel = panel;
    root.classList.toggle("is-roomy", PANEL_ROWS[panel].opensTall === true);
  };
  let place = store.cursor.place;
  const turner: View = {
    element: root,
    update: (change) => {
      if (!change.cursor) return;
      showPanel();
      if (place !== store.cursor.place) {
        tabs.fill(false);
        code.showPlace();
      }
      place = store.cursor.place;
    },
  };
  store.add(turner);
  showPanel();

  const low = h("div", { class: "low" }, tabs.element, ...PANELS.map((key) => panels[key].element));
  const elements = [
    pipeline.element,
    main,
    makeDivider(root, () => (PANEL_ROWS[store.cursor.panel].opensTall ? "--low-roomy" : "--low"), "y"),
    low,
    makeFooter(store.index, size),
  ];
  const ready = (): Promise<void> => (panels[store.cursor.panel] as Partial<LazyView>).ready ?? Promise.resolve();
  const destroy = (): void => {
    store.drop([...views, turner]);
    for (const element of elements) element.remove();
    root.classList.remove("is-filled", "is-roomy");
  };
  return {
    elements,
    story: null,
    graph,
    fill: () => tabs.fill(),
    stepper: () => (panels.rewrites as DeferredView).getOrCreate() as StepperView,
    ready,
    destroy,
  };
}

const MODE_KEY = "tinyexplore.mode"; // of all views: no view writes it, a user or a site may

/** Returns the mode that the user chose in this page, else the one that this browser has for all views. */
function readMode(isPage = false): Mode | null {
  try {
    const pageMode = isPage ? localStorage.getItem(keyOfPage()) : null;
    const stored = pageMode ?? localStorage.getItem(MODE_KEY);
    return stored === "story" || stored === "workbench" ? stored : null;
  } catch {
    return null; // a page from a file, or a notebook in a frame, may have no storage
  }
}

function saveMode(mode: Mode): void {
  try {
    localStorage.setItem(keyOfPage(), mode);
  } catch {
    // without storage, the choice is not remembered
  }
}

function keyOfPage(): string {
  return `${MODE_KEY}:${location.pathname}`;
}

/** Returns the first mode: the story for new users, unless a program has set a position. */
function chooseMode(store: Store): Mode {
  return store.selected.size > 0 ? "workbench" : "story";
}

/** Creates the control that switches between the story and the workbench. */
function makeModeChoice(choose: (mode: Mode) => void): { element: HTMLElement; update(mode: Mode): void } {
  const titles: Record<Mode, string> = {
    story: "One stage at a time: a picture and a sentence (W switches)",
    workbench: "All views together (W switches)",
  };
  const modes = Object.keys(titles) as Mode[];
  const buttons = modes.map((mode) =>
    button(mode === "story" ? "Story" : "Workbench", titles[mode], () => choose(mode)),
  );
  const element = h("span", { class: "modes", role: "group", "aria-label": "Display mode" }, ...buttons);
  const update = (now: Mode): void =>
    buttons.forEach((modeButton, i) => modeButton.setAttribute("aria-pressed", String(modes[i] === now)));
  return { element, update };
}

/** Returns the first position of the story: the tensors, and the scheduler's first decision on them. */
function chooseCursor(index: TraceIndex): Cursor {
  const { trace } = index;
  const first = findBeginning(trace.stages);
  const hasTensors = trace.nodes.some((node) => isTensor(trace, node));
  return {
    place: hasTensors ? "lazy" : "passes",
    kernel: findSlowest(index)?.id ?? findSlowest(index, index.trace.kernels)?.id ?? null,
    stage: first?.stage ?? null,
    step: first?.step ?? 0,
    graph: hasTensors ? "lazy" : "uops",
    panel: choosePanel(trace),
    tabs: {},
  };
}

/** Returns the first panel: modules for a model, the first supported panel for another compiler's trace. */
function choosePanel({ scopes, dialect }: Trace): Panel {
  const preferred = scopes.length > 1 ? "modules" : "rewrites";
  const panels = dialect?.panels;
  return panels === undefined || panels.includes(preferred)
    ? preferred
    : (PANELS.find((name) => panels.includes(name)) ?? preferred);
}

/** The default options, which the story does not list. */
const DEFAULT_OPTIONS: Record<string, string> = { DEVICE: "LLVM", NOOPT: "0", BEAM: "0", repeat: "10" };

function makeHeader(
  trace: Trace,
  engine: HTMLElement[],
  modes: HTMLElement,
  back: (() => void) | undefined,
  goTo: HTMLElement,
  whole: HTMLElement,
): HTMLElement {
  const chips = trace.options.map(([name, value]) => {
    const elsewhere = name === "DEVICE" ? listOtherDevices(trace, value) : "";
    const isAsEver = (DEFAULT_OPTIONS[name] === value && elsewhere === "") || name === "tinyexplore";
    const device = name === "DEVICE" ? findMeaning("device", value.split(":")[0]) : "";
    const lines = [
      `${name} = ${value}`,
      device,
      elsewhere && `Kernels ran on ${elsewhere}, the device of their inputs.`,
    ];
    return h(
      "span",
      {
        class: isAsEver ? "chip is-default" : "chip",
        title: [...lines, findMeaning("option", name)].filter(Boolean).join("\n"),
      },
      h("span", { class: "faint" }, `${name} `),
      value,
      device === "" || isAsEver ? "" : h("span", { class: "faint" }, ` ${device.slice(0, device.indexOf(":"))}`),
      elsewhere === "" ? "" : ` · kernels on ${elsewhere}`,
    );
  });
  const options = h(
    "span",
    { class: "chips", role: "group", "aria-label": "Options of this capture", tabindex: "0" },
    ...chips,
  ); // a narrow header scrolls
  return h(
    "header",
    { role: "group", "aria-label": "The capture" },
    back && button("← Back", "Back to the parent explorer", back),
    h("b", { class: "name" }, trace.title),
    options,
    h("span", { class: "space" }),
    ...engine,
    goTo,
    modes,
    whole,
  );
}

/**
 * Returns the devices of kernels that run elsewhere than on the capture's device: a kernel runs where its inputs are.
 */
function listOtherDevices({ kernels }: Trace, captureDevice: string): string {
  return [...new Set(kernels.map(({ device }) => device))].filter((device) => device !== captureDevice).join(", ");
}

/** Returns the engine's elements for the header. */
function listEngineParts(engine: Engine | undefined): HTMLElement[] {
  if (engine === undefined) return [];
  const { badge, playground } = engine;
  const says = "Write a program. The engine in this page runs and explores the program";
  return playground === undefined ? [badge] : [badge, button("Playground", says, playground)];
}

function makeBanner(trace: Trace, store: Store): HTMLElement | null {
  if (trace.messages.length === 0) return null;
  const rows = trace.messages.map(({ level, text, frame }) => {
    const location = frame === null ? undefined : trace.frames[frame];
    const show = (): void => store.select(store.index.nodesOfLine(location!.source, location!.line));
    const name = location ? `${trace.sources[location.source]?.name ?? "?"}:${location.line}` : "";
    const link = location ? h("button", { type: "button", class: "quiet", onclick: show }, name) : null;
    return h(
      "div",
      { class: `message ${level}`, role: level === "error" ? "alert" : "status" },
      h("b", {}, level),
      h("span", {}, text),
      link,
    );
  });
  return h("div", { class: "banner" }, ...rows);
}

function makeFooter(index: TraceIndex, size: number): HTMLElement {
  const { trace } = index;
  const key = (keys: string[], text: string): Element =>
    h("span", { class: "key" }, ...keys.map((name) => h("kbd", {}, name)), ` ${text}`);
  const large = size > LARGE_BYTES ? " (large: the notebook stores all of it)" : "";
  const facts = [...(trace.figures[0]?.summary ?? []), size > 0 ? `trace ${bytes(size)}${large}` : ""].filter(Boolean);
  const keys = (): Element[] => [
    key(["←", "→"], "step"),
    key(["↑", "↓"], "pass"),
    key(["⇧ arrows"], "move in the graph"),
    key(["G"], "go to"),
    key(["/"], "search"),
    key(["O"], "origin"),
    key(["B"], "history"),
    key(["Y"], "decisions"),
    key(["I"], "isolate"),
    key(["C"], "node card"),
    key(["F"], "fit"),
    key(["W"], "story"),
  ];
  return h(
    "footer",
    { role: "group", "aria-label": "Keys and statistics" },
    ...keys(),
    h("details", { class: "keys-menu" }, h("summary", {}, "keys"), h("div", {}, ...keys())), // for narrow headers
    h("span", { class: "space" }),
    h("span", { class: size > LARGE_BYTES ? "facts large" : "facts", title: facts.join(" · ") }, facts.join(" · ")),
  );
}
