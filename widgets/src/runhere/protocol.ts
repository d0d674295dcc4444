// What a page knows of a kernel that it can run, and the messages of its worker.

/** Of the page: `buffers` are (dtype, bytes) each; `inputs`, base64, what the kernel read when it was captured; `results` samples of what it writes. */
export interface Runnable {
  kernel: number;
  name: string;
  wasm: string;
  values: number[];
  buffers: [string, number][];
  inputs?: (string | null)[];
  results?: { buffer: number; step: number; sample: string }[];
}

/** For the worker: the same in bytes. */
export interface Task {
  name: string;
  wasm: Uint8Array<ArrayBuffer>;
  values: number[];
  buffers: [string, number][];
  inputs: (Uint8Array | null)[] | null;
  results: { buffer: number; step: number; sample: Uint8Array }[];
}

/** `compared` elements, of which `differing` are further off than rounding explains; `largest` is the largest error, relative to the largest value. */
export interface Outcome {
  times_us: number[];
  calls: number;
  compared: number;
  differing: number;
  largest: number;
}

export type Told = { outcome: Outcome } | { error: string };
