// Code that is loaded on first use. A chunk is an ES module whose default export is a function of the core's modules,
// so that these exist only once. Its text is in the page, or in a trait of the widget, and is imported from a Blob.

import type { Explain, Reach } from "./command_palette/entries";
import type { StageText } from "./model";
import { fromBase64, unzip } from "./payload";
import type { Runnable } from "./browser_run/messages";
import type { Panel, Store, View } from "./store";
import type { MakePage } from "./story/page";

/** The exports of an entry in src/chunks. */
export interface Chunk {
  views: Partial<Record<Panel, new (store: Store) => View>>;
  /** The views of standalone widgets, where they differ. */
  standaloneViews?: Partial<Record<Panel, new (store: Store) => View>>;
  css?: string;
  /** Returns the meaning of a word in a listing, null if it has none. */
  explain?: Explain;
  /** Opens the box that finds places by name; returns a function that closes it. */
  openBox?: (reach: Reach, explain: Explain, closed: () => void) => () => void;
  /** Creates the view of a stage's texts. */
  makeTexts?: (store: Store, texts: readonly StageText[]) => View;
  /** Searches the texts of all stages, and shows the first match. */
  findInTexts?: (store: Store, query: string) => void;
  /** Returns the history of the selected line. */
  listHistory?: (store: Store) => HTMLElement[];
  /** Creates the pages of the story. */
  makePage?: MakePage;
  /** Adds content to a panel of the core. */
  attach?: (panel: HTMLElement, store: Store, runnable: readonly Runnable[]) => void;
}

/** The page does not contain the text of the chunk. */
export class ChunkMissing extends Error {}

type Modules = Record<string, object>;

let core: Modules = {};

/** Called by the entry of a bundle with the modules that chunks use. */
export function setCoreModules(modules: Modules): void {
  core = modules;
}

export class Chunks {
  private readonly loaded = new Map<string, Promise<Chunk>>();

  /** `textOf`: returns the text of a chunk by name, null if it is missing. */
  constructor(private readonly textOf: (name: string) => Promise<string | null>) {}

  load(name: string): Promise<Chunk> {
    const pending = this.loaded.get(name);
    if (pending !== undefined) return pending;
    const opening = this.open(name);
    this.loaded.set(name, opening);
    return opening;
  }

  private async open(name: string): Promise<Chunk> {
    const text = await this.textOf(name);
    if (text === null) throw new ChunkMissing("This page lacks the code of this panel. A notebook has it.");
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    try {
      const { default: make } = (await import(url)) as { default: (core: Modules) => Chunk };
      return make(core);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(
        `The code of this panel may not run here: the Content-Security-Policy must allow scripts from blob: (script-src blob:). ${reason}`,
      );
    } finally {
      URL.revokeObjectURL(url);
    }
  }
}

/**
 * The chunks whose gzipped texts are in the page: `<script type="application/octet-stream+base64"
 * data-chunk="tuner">`.
 */
export const chunksOfPage = new Chunks(async (name) => {
  const holder = document.querySelector(`script[data-chunk="${name}"]`);
  return holder === null ? null : unzip(fromBase64(holder.textContent ?? ""));
});
