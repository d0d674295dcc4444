// The tabs of the panels: a row of groups, and beside it the panels of the open group.

import { canShow } from "../panel_availability";
import { button, h, tab, tabList } from "../dom";
import { PANEL_ROWS } from "../panel_rows";
import { type Change, GROUPS, type Panel, type Store, type View } from "../store";

const STORAGE_KEY = "tinyexplore.panels"; // key in the browser's storage: the panel of each group that was shown last
const NAMES = Object.keys(GROUPS) as Name[];

const PRESETS: [text: string, panel: Panel, says: string][] = [
  ["Understand", "rewrites", "The graph, and how it was rewritten step by step"],
  ["Tune", "tuner", "A kernel's loops, other opts for it, and their times"],
  ["Debug", "debugger", "A kernel step by step, with its values"],
];

type Name = keyof typeof GROUPS;

export class PanelTabs implements View {
  readonly element: HTMLElement;
  private readonly names: Name[];
  private readonly groups: HTMLElement[];
  private readonly panels = new Map<string, HTMLElement>();
  private readonly lists: HTMLElement[];
  private readonly last = readPanels();
  private readonly filler: HTMLElement;

  constructor(
    private readonly store: Store,
    private readonly root: HTMLElement,
  ) {
    this.names = NAMES.filter((name) => this.panelsOf(name).length > 0);
    this.groups = this.names.map((name) =>
      tab(name, GROUPS[name].title, false, () => this.open(name), GROUPS[name].says),
    );
    this.lists = this.names.map((name) => {
      const tabs = this.panelsOf(name).map((panel) =>
        tab(panel, PANEL_ROWS[panel].title, false, () => store.go({ panel })),
      );
      for (const tabPanel of tabs) this.panels.set(tabPanel.dataset.key!, tabPanel);
      const list = tabList(`${GROUPS[name].title}: panels`, ...tabs);
      list.dataset.group = name;
      return list;
    });
    const groups = tabList("Groups of panels", ...this.groups);
    groups.classList.add("groups");
    this.filler = button(
      "⤢",
      "Show the panel instead of graph and code, or back (P)",
      () => this.fill(),
      "quiet filler",
    );
    const presets = PRESETS.filter(([, panel]) => canShow(store, panel)).map(([text, panel, says]) =>
      button(text, says, () => this.applyPreset(panel), "quiet"),
    );
    if (presets.length === 1) presets[0].textContent = "default layout"; // nothing to choose from, but sizes to reset
    const chosen = h("span", { class: "presets", role: "group", "aria-label": "Arrange for" }, ...presets);
    const space = h("span", { class: "space" });
    this.element = h("div", { class: "panel-tabs" }, groups, ...this.lists, space, chosen, this.filler);
    this.fill(false);
    this.mark();
  }

  update(change: Change): void {
    if (change.cursor) this.mark();
  }

  /** Toggles whether the panel takes the place of the views above it. */
  fill(filled = !this.root.classList.contains("is-filled")): void {
    this.root.classList.toggle("is-filled", filled);
    this.filler.setAttribute("aria-pressed", String(filled));
  }

  /** Arranges the workbench for a panel: its size. */
  private applyPreset(panel: Panel): void {
    this.fill(false);
    for (const variable of ["--split", "--low", "--low-roomy"]) this.root.style.removeProperty(variable);
    this.store.go({ panel });
  }

  /** Returns the panels of a group that have content. */
  private panelsOf(name: Name): Panel[] {
    const panels: readonly Panel[] = GROUPS[name].panels;
    return panels.filter((panel) => canShow(this.store, panel));
  }

  /** Opens the panel of a group that was shown last, else its first. */
  private open(name: Name): void {
    const panels = this.panelsOf(name);
    const last = this.last[name] as Panel | undefined;
    this.store.go({ panel: last !== undefined && panels.includes(last) ? last : panels[0] });
  }

  private mark(): void {
    const { panel } = this.store.cursor;
    const open = NAMES.find((name) => (GROUPS[name].panels as readonly Panel[]).includes(panel))!;
    const current = this.names.includes(open) ? open : this.names[0]; // a link may open a panel without a tab
    this.names.forEach((name, i) => {
      choose(this.groups[i], name === current);
      const [first, ...more] = this.panelsOf(name);
      // no second tab with the group's name
      this.lists[i].hidden = name !== current || (more.length === 0 && PANEL_ROWS[first].title === GROUPS[name].title);
    });
    this.element.classList.toggle(
      "is-single",
      this.lists.every(({ hidden }) => hidden),
    ); // then there is nothing beside the groups
    for (const [name, element] of this.panels) choose(element, name === panel);
    for (const list of this.lists) {
      const tabs = [...list.querySelectorAll<HTMLElement>("[role=tab]")];
      if (!tabs.some(({ tabIndex }) => tabIndex === 0)) tabs[0].tabIndex = 0;
    }
    if (this.last[open] === panel) return;
    this.last[open] = panel;
    savePanels(this.last);
  }
}

function choose(element: HTMLElement, isChosen: boolean): void {
  element.setAttribute("aria-selected", String(isChosen));
  element.tabIndex = isChosen ? 0 : -1;
}

function readPanels(): Record<string, string> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}");
    return typeof stored === "object" && stored !== null ? (stored as Record<string, string>) : {};
  } catch {
    return {}; // a page from a file, or a notebook in a frame, may have no storage
  }
}

function savePanels(last: Record<string, string>): void {
  try {
    localStorage.setItem(STORAGE_KEY, JSON.stringify(last));
  } catch {
    // without storage, each group opens at its first panel
  }
}
