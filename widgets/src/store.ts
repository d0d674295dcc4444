// The state that the views share: one selection, one cursor, one hover; a change reaches all views.

import { type SendRequest, StoredResponses } from "./request_channel";
import { type Chunks, chunksOfPage } from "./chunks";
import { GROUPS, type Need, type Panel } from "./panel_rows";
import type { TraceIndex } from "./trace_index";

export type Place = "python" | "lazy" | "kernels" | "passes" | "uops" | "code" | "run";

export { GROUPS, type Panel };
export const PANELS: readonly Panel[] = Object.values(GROUPS).flatMap(({ panels }): readonly Panel[] => panels);

/** The current position. It is sent to Python as a dict, so it is plain data. */
export interface Cursor {
  place: Place;
  kernel: number | null;
  stage: number | null;
  /** The number of finished steps of the stage. */
  step: number;
  graph: "lazy" | "uops";
  panel: Panel;
  /** The tab of each code pane. */
  tabs: Record<string, string>;
}

export interface Change {
  cursor: boolean;
  selection: boolean;
  hover: boolean;
  /** Whether the graph shows only the selection and its neighbors. */
  isolate?: boolean;
}

export interface View {
  element: HTMLElement;
  update(change: Change): void;
  destroy?(): void;
}

export class Store {
  readonly index: TraceIndex;
  cursor: Cursor;
  selected: Set<number> = new Set();
  /** The selection with all its ancestors and descendants. */
  related: Set<number> = new Set();
  hovered: Set<number> = new Set();
  hoverRelated: Set<number> = new Set();
  /** Called after the user, not the program, changed something. */
  onSelect: ((nodes: number[]) => void) | null = null;
  onCursor: ((cursor: Cursor) => void) | null = null;
  /** Sends a request to Python; null without Python. */
  sendRequest: SendRequest | null = null;
  /** Opens the workbench if the story is open. */
  openWorkbench: (() => void) | null = null;
  /** The words that the glossary shows; empty for all that its field finds. */
  lookedUpTerms: readonly string[] = [];
  /** Whether the engine's side can run the captured program again. */
  canRerun = false;
  /** Adds the kernels that a page can run to the panel of times. */
  runHere: ((panel: HTMLElement, store: Store) => void) | null = null;
  /** The responses that a page stores, for use without Python. */
  responses = new StoredResponses();
  /** The source of the code of views that are loaded on first use. */
  chunks: Chunks;
  private views: View[] = [];
  /** The stores that share one selection and one hover: this one, and those pinned to other positions. */
  protected readonly family: Set<Store>;

  constructor(index: TraceIndex, cursor: Cursor, relative: Store | null = null) {
    this.index = index;
    this.cursor = cursor;
    this.family = relative?.family ?? new Set();
    this.family.add(this);
    this.chunks = relative?.chunks ?? chunksOfPage;
    this.sendRequest = relative?.sendRequest ?? null;
    this.canRerun = relative?.canRerun ?? false;
    if (relative !== null) this.responses = relative.responses;
    if (relative !== null) this.selected = relative.selected;
    this.updateRelated();
  }

  /** Whether the trace, or the page, has the data that a panel shows without Python. */
  hasData(need: Need): boolean {
    const { recordings, branches } = this.index.trace;
    if (need === "recordings") return recordings.length > 0;
    if (need === "branches") return branches.length > 0;
    if (need === "schedules") return branches.some(({ schedule }) => schedule !== null);
    return this.responses.of(need).length > 0;
  }

  add(view: View): void {
    this.views.push(view);
  }

  /** Removes views, and lets them clean up. */
  drop(removed: readonly View[]): void {
    this.views = this.views.filter((view) => !removed.includes(view));
    for (const view of removed) view.destroy?.();
  }

  select(nodes: Iterable<number>, silent = false): void {
    const existing = [...new Set(nodes)].filter((id) => this.index.trace.nodes[id] !== undefined);
    if (existing.length === this.selected.size && existing.every((id) => this.selected.has(id))) return;
    for (const store of this.family) store.takeSelection(existing);
    if (!silent) for (const store of this.family) store.onSelect?.(existing);
  }

  /** Adds nodes to the selection, or removes them if all of them are in it. */
  toggle(nodes: readonly number[]): void {
    const next = new Set(this.selected);
    const had = nodes.every((node) => next.has(node));
    for (const node of nodes)
      if (had) next.delete(node);
      else next.add(node);
    this.select(next);
  }

  /** Selects nodes, and restricts the graph to them and their neighbors. */
  isolate(nodes: readonly number[]): void {
    this.go({ graph: "lazy", place: "lazy" });
    this.select(nodes);
    for (const store of this.family) store.notify({ cursor: false, selection: false, hover: false, isolate: true });
  }

  private takeSelection(nodes: number[]): void {
    this.selected = new Set(nodes);
    if ([...this.hovered].every((id) => this.selected.has(id))) this.takeHover(new Set());
    this.followKernel(nodes);
    this.updateRelated();
    this.notify({ cursor: false, selection: true, hover: false });
  }

  go(change: Partial<Cursor>, silent = false): void {
    const before = JSON.stringify(this.cursor);
    const next = this.validate(change);
    if (JSON.stringify(next) === before) return;
    const otherKernel = next.kernel !== this.cursor.kernel;
    this.cursor = next;
    if (otherKernel) this.updateRelated();
    this.notify({ cursor: true, selection: otherKernel, hover: false });
    if (!silent) this.onCursor?.(next);
  }

  /** Returns the cursor after a change, which may be external and name only a stage. */
  private validate(change: Partial<Cursor>): Cursor {
    const { trace } = this.index;
    const next = { ...this.cursor, ...change };
    if (next.stage !== null && trace.stages[next.stage] === undefined) next.stage = this.cursor.stage;
    if (next.kernel !== null && trace.kernels[next.kernel] === undefined) next.kernel = this.cursor.kernel;
    if (next.kernel !== this.cursor.kernel && change.stage === undefined)
      next.stage = this.findCounterpart(next.stage, next.kernel);
    const stage = next.stage === null ? null : trace.stages[next.stage];
    if (stage !== null && next.stage !== this.cursor.stage) {
      if (change.step === undefined) next.step = this.index.endOf(stage);
      if (change.kernel === undefined && stage.kernel !== null && trace.kernels[stage.kernel])
        next.kernel = stage.kernel;
    }
    const steps = stage?.steps.length ?? 0;
    next.step = Math.max(0, Math.min(Number.isInteger(next.step) ? next.step : steps, steps));
    return next;
  }

  /** Returns the stage of `kernel` that corresponds to `stage` of another kernel: the graph follows the kernel. */
  private findCounterpart(stage: number | null, kernel: number | null): number | null {
    const { stages, kernels } = this.index.trace;
    const owner = kernel === null ? null : (kernels[kernel].same_as ?? kernel);
    if (stage === null || owner === null || stages[stage].kernel === null || stages[stage].kernel === owner)
      return stage;
    const kernelStages = stages.filter((other) => other.kernel === owner);
    return (kernelStages.find(({ name }) => name === stages[stage].name) ?? kernelStages.at(-1))?.id ?? stage;
  }

  hover(nodes: Iterable<number>): void {
    const next = new Set(nodes);
    if (next.size === this.hovered.size && [...next].every((id) => this.hovered.has(id))) return;
    // highlighted nodes need no second highlight
    if ([...next].every((id) => this.selected.has(id))) next.clear();
    for (const store of this.family) store.takeHover(next);
  }

  private takeHover(next: Set<number>): void {
    this.hovered = next;
    this.hoverRelated = next.size === 0 ? next : this.index.related(next, this.cursor.kernel);
    this.notify({ cursor: false, selection: false, hover: true });
  }

  /** Switches to the kernel of selected LazyBuffers if only other kernels compute them. */
  private followKernel(nodes: number[]): void {
    const kernels = new Set<number>();
    for (const id of nodes) {
      const kernel = this.index.kernelOf.get(id);
      if (kernel !== undefined) kernels.add(kernel);
    }
    const current = this.cursor.kernel;
    if (kernels.size === 0 || (current !== null && kernels.has(current))) return;
    if (current !== null && nodes.some((id) => this.index.membersOf(current).has(id))) return;
    this.go({ kernel: Math.min(...kernels) });
  }

  private updateRelated(): void {
    this.related = this.selected.size === 0 ? new Set() : this.index.related(this.selected, this.cursor.kernel);
  }

  private notify(change: Change): void {
    for (const view of this.views) view.update(change);
  }

  destroy(): void {
    this.drop(this.views);
    this.family.delete(this);
  }
}

/** A store with its own position (`pinned`: one graph, one stage) that follows another one in everything else. */
export class PinnedStore extends Store {
  private readonly follower: View = {
    element: document.createElement("span"),
    update: (change) => {
      if (change.cursor) this.follow();
    },
  };

  constructor(
    private readonly root: Store,
    private pinned: Partial<Cursor>,
  ) {
    super(root.index, { ...root.cursor }, root);
    super.go(pinned, true);
    this.pinned = Object.fromEntries(Object.keys(pinned).map((key) => [key, this.cursor[key as keyof Cursor]]));
    root.add(this.follower);
  }

  /** Handles a move of the user: pinned fields stay, the others change in all views. */
  override go(change: Partial<Cursor>, silent = false): void {
    if (change.tabs !== undefined && this.pinned.tabs !== undefined) this.pin({ tabs: change.tabs });
    const free = Object.entries(change).filter(([key]) => !(key in this.pinned));
    if (free.length > 0) this.root.go(Object.fromEntries(free), silent);
  }

  /** Changes pinned fields. */
  pin(change: Partial<Cursor>): void {
    super.go(change, true);
    for (const key of Object.keys(this.pinned)) Object.assign(this.pinned, { [key]: this.cursor[key as keyof Cursor] });
  }

  private follow(): void {
    super.go({ ...this.root.cursor, ...this.pinned }, true);
  }

  override destroy(): void {
    this.root.drop([this.follower]);
    super.destroy();
  }
}
