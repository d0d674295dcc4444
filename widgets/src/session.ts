// The state that the widgets of one explorer share: the trace, decoded once, and one store, bound to the explorer's
// traits.

import { type SendRequest, type Channel, sendOverChannel } from "./request_channel";
import { Chunks } from "./chunks";
import { h } from "./dom";
import { type BranchMessage, updateProgress, addBranches } from "./engine";
import { type Handle, type Mode, mountOn, openStore } from "./explorer";
import { completeCursor, placeOf, readLink } from "./links";
import { type Kind, mountView } from "./single_view";
import { readJson, readTrace } from "./payload";
import { showQuestion } from "./question_widget";
import { type Cursor, PinnedStore, type Store, type View } from "./store";
import type { TourStop } from "./views/tour";
import { type CurrentBranches, type Progress, whatIfOf } from "./what_if";

/** The part of anywidget's model that this module uses. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, handler: (content?: unknown) => void): void;
  off(event: string, handler: (content?: unknown) => void): void;
  send?(content: unknown): void;
}

type Payload = DataView | ArrayBuffer | Uint8Array;

export class Session {
  private opened: Promise<Store>;
  private readonly redraws = new Set<() => void>();
  private readonly handles = new Set<Handle>();
  private readonly stops: (() => void)[];
  private texts: Promise<Record<string, string>> | null = null;
  private readonly chunks = new Chunks(async (name) => (await this.readChunks())[name] ?? null);

  constructor(private readonly model: Model) {
    this.opened = this.open();
    this.stops = [
      listen(model, "payload", () => {
        this.opened = this.open();
        this.redraw();
      }),
      listen(
        model,
        "selected",
        () => void this.opened.then((store) => store.select(model.get("selected") as number[], true), ignoreError),
      ),
      listen(model, "is_live", () => void this.opened.then((store) => this.connect(store), ignoreError)),
      listen(model, "answers", () => void this.opened.then((store) => this.updateChannel(store), ignoreError)),
      listen(model, "working", () => void this.opened.then((store) => this.updateProgress(store), ignoreError)),
      listen(
        model,
        "cursor",
        () => void this.opened.then((store) => store.go(model.get("cursor") as Partial<Cursor>, true), ignoreError),
      ),
      listenForMessages(model, (content) => this.receiveBranches(content)),
    ];
    this.askForBranches();
  }

  private get bytes(): Uint8Array {
    return bytesOf(this.model.get("payload") as Payload);
  }

  private async open(): Promise<Store> {
    const { model } = this;
    const trace = await readTrace(this.bytes);
    const initial = { selected: model.get("selected") as number[], cursor: model.get("cursor") as Partial<Cursor> };
    const store = openStore(trace, initial);
    store.chunks = this.chunks;
    store.onSelect = (nodes) => save(model, { selected: nodes });
    store.onCursor = (cursor) => save(model, { cursor });
    await addBranches(store.index, { rows: this.rows, places: model.get("places") as CurrentBranches });
    store.sendRequest = this.findChannel();
    store.canRerun = model.get("runs_again") === true;
    this.connect(store);
    return store;
  }

  /** Returns the texts of all chunks, decoded on first use. */
  private readChunks(): Promise<Record<string, string>> {
    this.texts ??= readJson(bytesOf(this.model.get("chunks") as Payload)) as Promise<Record<string, string>>;
    return this.texts;
  }

  /** The model's own rows of branches. They grow in place, since an assigned value would be sent back to Python. */
  private get rows(): string[] {
    return this.model.get("branches") as string[];
  }

  /** Requests the rows that were sent before this side was ready, or that are missing. */
  private askForBranches(): void {
    if (this.model.get("is_live") === true) this.model.send?.({ since: this.rows.length });
  }

  private receiveBranches(content: unknown): void {
    const message = (content as { branches?: BranchMessage & { first: number } } | null)?.branches;
    if (message === undefined) return;
    const { rows } = this;
    if (message.first > rows.length) return this.askForBranches();
    const further = message.rows.slice(rows.length - message.first);
    rows.push(...further);
    Object.assign(this.model.get("places") as object, message.places);
    void this.opened.then((store) => addBranches(store.index, { rows: further, places: message.places }), ignoreError);
  }

  /** Returns the channel for requests; null while Python does not respond. */
  private findChannel(): SendRequest | null {
    return this.model.get("answers") === true ? sendOverChannel(this.model as unknown as Channel) : null;
  }

  /** Redraws every view when Python begins or stops to respond, because panels then show other text. */
  private updateChannel(store: Store): void {
    if ((store.sendRequest !== null) === (this.model.get("answers") === true)) return;
    store.sendRequest = this.findChannel();
    store.canRerun = this.model.get("runs_again") === true;
    this.redraw();
  }

  private redraw(): void {
    for (const redraw of [...this.redraws]) redraw();
  }

  /** Sends commands to Python as soon as it responds. */
  private connect(store: Store): void {
    const { model } = this;
    const answered = model.get("is_live") === true && model.send !== undefined;
    const ask = answered ? sendOverChannel(model as unknown as Channel, null) : null;
    const refuse = (error: Error): void => updateProgress(store.index, { error: error.message });
    whatIfOf(store.index).connect(ask && ((request) => void ask(request).catch(refuse)));
  }

  private updateProgress(store: Store): void {
    updateProgress(store.index, this.model.get("working") as Partial<Progress> & { error?: string });
  }

  /** Shows the whole explorer in `element`; returns a function that removes it. */
  showExplorer(element: HTMLElement): () => void {
    return this.show(element, this.model, (store) => {
      const { model } = this;
      const handle: Handle = mountOn(element, store, {
        size: this.bytes.byteLength,
        height: model.get("height") as string,
        mode: (model.get("mode") as Mode | "") || undefined,
        onMode: (mode) => save(model, { mode }),
        tour: model.get("tour") as TourStop[],
      });
      this.handles.add(handle);
      const follow = (): void => {
        const link = model.get("link") as string;
        if (link === "") return;
        handle.open(link);
        save(model, { link: "" }); // so that the same link can be followed again
      };
      const stops = [
        listen(model, "mode", () => handle.show((model.get("mode") as Mode | "") || handle.mode)),
        listen(model, "link", follow),
        listen(model, "tour", () => handle.tour(model.get("tour") as TourStop[])),
      ];
      follow();
      return () => {
        for (const stop of stops) stop();
        this.handles.delete(handle);
        handle.destroy();
      };
    });
  }

  /** Goes to the position of a link; for a chapter of the story, in the visible explorers. */
  follow(link: string): void {
    const target = readLink(link);
    void this.opened.then((store) => {
      if (target === null) return;
      store.go(completeCursor(store.index, target.cursor));
      if (target.selected !== null) store.select(target.selected);
      if (target.story !== null) for (const handle of this.handles) handle.open(link);
    }, ignoreError);
  }

  /** Shows a question in `element`. */
  showQuestion(element: HTMLElement, part: Model): () => void {
    return showQuestion(this, element, part);
  }

  /**
   * Shows one view in `element`, with its traits (`selected`, `stage`, `step`) bound to the shared store or to its own
   * position.
   */
  showView(element: HTMLElement, part: Model): () => void {
    return this.show(element, part, (shared) => {
      const { look, ...pinned } = part.get("pinned") as Partial<Cursor> & { look?: string };
      const store = Object.keys(pinned).length === 0 ? shared : new PinnedStore(shared, pinned);
      const unbind = bindView(part, store);
      const pane = (part.get("pane") as string | null) ?? "";
      const unmount = mountView(element, store, part.get("view") as Kind, {
        height: part.get("height") as string,
        pane,
        look,
      });
      return () => {
        unbind();
        unmount();
        if (store !== shared) store.destroy();
      };
    });
  }

  /** `model`: the widget's own; its height may change while it is shown. */
  private show(element: HTMLElement, model: Model, draw: (store: Store) => () => void): () => void {
    let remove = (): void => undefined;
    let version = 0;
    const open = async (): Promise<void> => {
      version += 1;
      const mine = version;
      try {
        const store = await this.opened;
        if (mine !== version) return; // a newer payload replaced this one, or the view was removed
        remove();
        element.replaceChildren();
        remove = draw(store);
      } catch (error) {
        if (mine === version)
          element.replaceChildren(h("pre", { role: "alert" }, `The explorer cannot show this trace. ${String(error)}`));
      }
    };
    const redraw = (): void => void open();
    this.redraws.add(redraw);
    const stop = listen(model, "height", redraw);
    redraw();
    return () => {
      version += 1;
      stop();
      this.redraws.delete(redraw);
      remove();
    };
  }

  close(): void {
    for (const stop of this.stops) stop();
  }
}

/** Synchronizes the traits of a view's widget and its store, in both directions. */
function bindView(part: Model, store: Store): () => void {
  const tell = (): void => {
    const { stage, step } = store.cursor;
    save(part, { selected: [...store.selected], stage, step });
  };
  const lead: View = {
    element: h("span"),
    update: (change) => {
      if (change.cursor || change.selection) tell();
    },
  };
  store.add(lead);
  const go = (change: Partial<Cursor>): void => {
    if (store instanceof PinnedStore) {
      store.pin(change);
      tell();
    } else store.go(change);
  };
  const stops = [
    listen(part, "selected", () => store.select(part.get("selected") as number[])),
    listen(part, "stage", () => {
      const stage = part.get("stage") as number | null;
      if (stage !== null && stage !== store.cursor.stage) go(placeOf(store.index, stage));
    }),
    listen(part, "step", () => {
      if (part.get("step") !== store.cursor.step) go({ step: part.get("step") as number });
    }),
  ];
  tell();
  return () => {
    for (const stop of stops) stop();
    store.drop([lead]);
  };
}

function bytesOf(value: Payload | null | undefined): Uint8Array {
  if (value === null || value === undefined) return new Uint8Array();
  return value instanceof ArrayBuffer
    ? new Uint8Array(value)
    : new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

function listenForMessages(model: Model, handler: (content: unknown) => void): () => void {
  model.on("msg:custom", handler);
  return () => model.off("msg:custom", handler);
}

function listen(model: Model, trait: string, handler: () => void): () => void {
  model.on(`change:${trait}`, handler);
  return () => model.off(`change:${trait}`, handler);
}

/** Sets the values that differ, and sends them. */
function save(model: Model, values: Record<string, unknown>): void {
  const changed = Object.entries(values).filter(
    ([name, value]) => JSON.stringify(model.get(name)) !== JSON.stringify(value),
  );
  for (const [name, value] of changed) model.set(name, value);
  if (changed.length > 0) model.save_changes();
}

function ignoreError(): void {
  // the error of an unreadable trace is shown in its place
}
