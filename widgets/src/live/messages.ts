// The messages between a page with engine and its worker; all are plain data.

/** A file in the page, compressed, in base85. */
export interface PackedFile {
  name: string;
  text: string;
}

export type ToWorker =
  | { do: "start"; files: PackedFile[]; trace: Uint8Array | null; recorded: string }
  | { do: "ask"; id: number; question: string };

export type FromWorker =
  | { type: "progress"; text: string; done: number; of: number }
  | { type: "ready"; python: string; live: boolean; seconds: number }
  | { type: "failed"; text: string }
  | { type: "answer"; id: number; answer: string; trace?: Uint8Array }
  | { type: "branches"; data: string }
  | { type: "working"; data: string };

export const ENGINE = "tinyexplore.zip";
export const PACKED_FILES = "carried.json";
export const LOCK = "pyodide-lock.json";
