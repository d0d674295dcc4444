// Code that comes when it is first needed. A chunk is an ES module whose default export makes it of the core's modules, so
// that those exist once; its text lies in the page, or in a trait of the widget, and is imported from a Blob.

import type { Explain, Reach } from "./goto/entries";
import type { StageText } from "./model";
import { fromBase64, unzipped } from "./payload";
import type { Runnable } from "./runhere/protocol";
import type { Panel, Store, View } from "./store";
import type { MakePage } from "./story/page";

/** What an entry in src/chunks exports. */
export interface Chunk {
  views: Partial<Record<Panel, new (store: Store) => View>>;
  /** Those that are other views as a widget of their own. */
  lone?: Partial<Record<Panel, new (store: Store) => View>>;
  css?: string;
  /** What a word of a listing means, null where there is nothing to say. */
  explain?: Explain;
  /** Opens the box that goes to places by name; returns how to close it. */
  openBox?: (reach: Reach, explain: Explain, closed: () => void) => () => void;
  /** Makes the view of the texts of a stage. */
  makeTexts?: (store: Store, texts: readonly StageText[]) => View;
  /** Searches the texts of all stages, and shows the first match. */
  findInTexts?: (store: Store, query: string) => void;
  /** The lines that led to the line that was chosen last. */
  historyOfLine?: (store: Store) => HTMLElement[];
  /** Makes the pages of the story. */
  makePage?: MakePage;
  /** Adds to a panel that the core has. */
  attach?: (panel: HTMLElement, store: Store, runnable: readonly Runnable[]) => void;
}

/** Its text is not in the page. */
export class ChunkMissing extends Error {}

type Modules = Record<string, object>;

let core: Modules = {};

/** The entry of a bundle hands over the modules that chunks use. */
export function share(modules: Modules): void {
  core = modules;
}

export class Chunks {
  private readonly loaded = new Map<string, Promise<Chunk>>();

  /** `textOf`: the text of a chunk by its name, null where it is not. */
  constructor(private readonly textOf: (name: string) => Promise<string | null>) {}

  load(name: string): Promise<Chunk> {
    const known = this.loaded.get(name);
    if (known !== undefined) return known;
    const found = this.open(name);
    this.loaded.set(name, found);
    return found;
  }

  private async open(name: string): Promise<Chunk> {
    const text = await this.textOf(name);
    if (text === null) throw new ChunkMissing("This page was saved without the code of this panel; a notebook has it.");
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

/** The chunks that lie in the page as texts: `<script type="application/octet-stream+base64" data-chunk="tuner">`, gzipped. */
export const chunksOfPage = new Chunks(async (name) => {
  const holder = document.querySelector(`script[data-chunk="${name}"]`);
  return holder === null ? null : unzipped(fromBase64(holder.textContent ?? ""));
});
