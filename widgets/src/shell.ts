// The element around views: its theme, its width, and its shortcut keys.

import story from "./story_frame.css";
import css from "./style.css";
import verdicts from "./verdicts.css";
import { h } from "./dom";
import { canShow } from "./panel_availability";
import { PANEL_ROWS } from "./panel_rows";
import { PANELS, type Panel, type Store } from "./store";
import type { GraphView } from "./views/graph";
import { makeOriginText } from "./views/node_card";
import type { StepperView } from "./views/stepper";
import type { StoryView } from "./views/story";

export type Theme = "light" | "dark" | "auto";

/** Creates an element with the views' styles, and a function that releases it. */
export function makeShell(
  label: string,
  height: string | undefined,
  theme: Theme,
): { root: HTMLElement; release: () => void } {
  const root = h("div", {
    class: "tinyexplore",
    tabindex: 0,
    role: "application",
    "aria-label": label,
    "data-lm-suppress-shortcuts": "true", // disables the notebook's own shortcuts inside
    style: height ? `--height:${height}` : null,
  });
  root.append(h("style", {}, css + story + verdicts));
  const stopTheme = followTheme(root, theme);
  const sizes = new ResizeObserver(([entry]) => {
    const { width, height } = entry.contentRect;
    root.classList.toggle("is-tight", width < 560);
    root.classList.toggle("is-low", height < 720);
    root.dataset.width = width < 900 ? "narrow" : width < 1120 ? "medium" : "wide";
  });
  sizes.observe(root);
  const release = (): void => {
    stopTheme();
    sizes.disconnect();
    root.remove();
  };
  return { root, release };
}

/** Toggles full screen for the explorer, or the full window if that is not permitted. */
export function fullScreen(root: HTMLElement): void {
  if (document.fullscreenElement !== null) void document.exitFullscreen();
  else if (root.classList.contains("is-full")) root.classList.remove("is-full");
  else root.requestFullscreen().catch(() => root.classList.add("is-full"));
}

/** The targets of shortcut keys; a widget with one view has only some. */
export interface KeyTargets {
  store: Store;
  graph: GraphView | null;
  /** Created when a key first needs it. */
  stepper: (() => StepperView) | null;
  root: HTMLElement;
  /** Whether there are panels to switch between. */
  panels: boolean;
  story?: StoryView | null;
  /** Toggles whether the panel fills the view. */
  fill?: (() => void) | null;
  /** Switches between the story and the workbench. */
  toggle?: () => void;
  /** Opens the box that finds places by name. */
  goTo?: () => void;
}

export function handleKey(
  event: KeyboardEvent,
  { store, graph, stepper, root, panels, story, fill, toggle, goTo }: KeyTargets,
): void {
  const target = event.composedPath()[0] as HTMLElement;
  const typing =
    (target instanceof HTMLInputElement && !["checkbox", "range"].includes(target.type)) ||
    target instanceof HTMLSelectElement;
  event.stopPropagation();
  if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
  const pressed =
    (target instanceof HTMLButtonElement || target instanceof HTMLInputElement) && [" ", "Enter"].includes(event.key);
  if (pressed) return;
  const walks: Record<string, "up" | "down" | "left" | "right"> = {
    ArrowUp: "up",
    ArrowDown: "down",
    ArrowLeft: "left",
    ArrowRight: "right",
  };
  const ofStepper: Record<string, (stepper: StepperView) => void> = {
    ArrowLeft: (view) => view.move(-1),
    ArrowRight: (view) => view.move(1),
    ArrowUp: (view) => view.movePass(-1),
    ArrowDown: (view) => view.movePass(1),
    Home: (view) => view.moveToEnd(false),
    End: (view) => view.moveToEnd(true),
    " ": (view) => view.play(),
    n: (view) => view.nextOnNode(),
    r: (view) => view.nextOfRule(),
  };
  const ofGraph: Record<string, (graph: GraphView) => void> = {
    "/": (view) => view.focusSearch(),
    i: (view) => view.isolate(),
    c: (view) => view.focusCard(),
    f: (view) => view.fit(),
    e: (view) => view.toggleSelected(),
  };
  const panelOf = (key: string): Panel | undefined =>
    PANELS.find((panel) => PANEL_ROWS[panel].key === key && canShow(store, panel));
  const turnTo = (panel: Panel): void => store.go({ panel: store.cursor.panel === panel ? "rewrites" : panel });
  const leave = (): void => {
    store.select([]);
    root.focus();
  };
  const actionOf = (key: string): (() => void) | undefined => {
    if (stepper !== null && ofStepper[key] !== undefined) return () => ofStepper[key](stepper());
    if (graph !== null && ofGraph[key] !== undefined) return () => ofGraph[key](graph);
    if (key === "w") return toggle;
    if (key === "g") return goTo;
    if (story && (key === "ArrowLeft" || key === "ArrowRight")) {
      const direction = key === "ArrowLeft" ? -1 : 1;
      return () => (event.shiftKey ? story.turn(direction) : story.move(direction));
    }
    if (story && key === " ") return () => story.play();
    if (key === "p" && fill) return () => fill();
    if (key === "z") return () => fullScreen(root);
    if (key === "o") return () => makeOriginText(store);
    const panel = panelOf(key);
    if (panel !== undefined && panels) return () => turnTo(panel);
    return key === "Escape" ? leave : undefined;
  };
  const walk = walks[event.key];
  const walking = event.shiftKey && walk !== undefined && graph !== null ? () => graph.walk(walk) : undefined;
  const action = walking ?? actionOf(event.key.length === 1 ? event.key.toLowerCase() : event.key);
  if (action === undefined) return;
  event.preventDefault();
  action();
}

/**
 * Applies a light or dark theme: as given, as in JupyterLab or VS Code, else as in the system. Returns a function that
 * stops following changes.
 */
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
