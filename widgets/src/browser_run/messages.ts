// The data of a kernel that a page can run, and the messages of its worker.

/**
 * A kernel in the page. `buffers`: (dtype, bytes) each. `inputs`: the captured inputs in base64. `results`: samples of
 * the expected outputs.
 */
export interface Runnable {
  kernel: number;
  name: string;
  wasm: string;
  values: number[];
  buffers: [string, number][];
  inputs?: (string | null)[];
  results?: { buffer: number; step: number; sample: string }[];
}

/** The same for the worker, as bytes. */
export interface Task {
  name: string;
  wasm: Uint8Array<ArrayBuffer>;
  values: number[];
  buffers: [string, number][];
  inputs: (Uint8Array | null)[] | null;
  results: { buffer: number; step: number; sample: Uint8Array }[];
}

/**
 * The comparison: `differing` of `compared` elements differ by more than rounding; `largest` is the largest relative
 * error.
 */
export interface RunResult {
  times_us: number[];
  calls: number;
  compared: number;
  differing: number;
  largest: number;
}

export type WorkerMessage = { outcome: RunResult } | { error: string };
