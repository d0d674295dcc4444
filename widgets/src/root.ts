// The element around views: its theme, its width, and what keys do in it.

import story from "./story.css";
import css from "./style.css";
import verdicts from "./verdicts.css";
import { h } from "./dom";
import { canShow } from "./available";
import { PANEL_ROWS } from "./panel_rows";
import { PANELS, type Panel, type Store } from "./store";
import type { GraphView } from "./views/graph";
import { showOrigin } from "./views/nodecard";
import type { StepperView } from "./views/stepper";
import type { StoryView } from "./views/story";

export type Theme = "light" | "dark" | "auto";

/** An element in which views look right, and how to let go of it. */
export function makeRoot(
  label: string,
  height: string | undefined,
  theme: Theme,
): { root: HTMLElement; release: () => void } {
  const root = h("div", {
    class: "tinyexplore",
    tabindex: 0,
    role: "application",
    "aria-label": label,
    "data-lm-suppress-shortcuts": "true", // the notebook's own keys stay out of here
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

/** Gives the explorer the whole screen, or where that is not allowed the whole window; and takes it back. */
export function fullScreen(root: HTMLElement): void {
  if (document.fullscreenElement !== null) void document.exitFullscreen();
  else if (root.classList.contains("is-full")) root.classList.remove("is-full");
  else root.requestFullscreen().catch(() => root.classList.add("is-full"));
}

/** What keys act on; a widget with one view has only some of it. */
export interface KeyTargets {
  store: Store;
  graph: GraphView | null;
  /** It is made when a key first asks for it. */
  stepper: (() => StepperView) | null;
  root: HTMLElement;
  /** Whether there is a panel to change. */
  panels: boolean;
  story?: StoryView | null;
  /** Gives the panel all the room, and takes it back. */
  fill?: (() => void) | null;
  /** Changes between the story and the workbench. */
  toggle?: () => void;
  /** Opens the box that goes to places by name. */
  goTo?: () => void;
}

export function onKey(
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
    if (key === "o") return () => showOrigin(store);
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

/** Light or dark: as given, as JupyterLab or VS Code say, else as the system prefers. Returns how to stop following. */
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
