// Lays out large graphs in a worker, so that the page stays responsive; a newer graph replaces an older one.

import type { Layout } from "./layout";
import { type LayoutRequest, arrangeGraph, source } from "./layout_unit";

const AT_ONCE = 450; // boxes; a smaller layout takes less time than starting a worker, and does not flicker
const PATIENCE = 0.1; // seconds for sweeps if no worker can start

export class LayoutWorker {
  private worker: Worker | null = null;
  private static isForbidden = false; // whether a page's policy forbids workers

  /** `busy`: called with the number of boxes when a layout begins in a worker, and with null when it ends. */
  constructor(private readonly busy: (boxes: number | null) => void) {}

  /** Calls `done` with the layout: immediately for a small graph, else later, unless a newer one is requested. */
  layOut(request: LayoutRequest, done: (layout: Layout) => void): void {
    this.cancel();
    if (request.nodes.length <= AT_ONCE) done(arrangeGraph(request));
    else if (source !== "" && typeof Worker === "function" && !LayoutWorker.isForbidden) this.work(request, done);
    else done(arrangeGraph({ ...request, patience: PATIENCE }));
  }

  cancel(): void {
    if (this.worker === null) return;
    this.worker.terminate();
    this.worker = null;
    this.busy(null);
  }

  private work(request: LayoutRequest, done: (layout: Layout) => void): void {
    const layOutHere = (): void => {
      LayoutWorker.isForbidden = true;
      this.cancel();
      this.layOut(request, done);
    };
    const text = `const { arrangeGraph } = (${source})(); onmessage = ({ data }) => postMessage(arrangeGraph(data));`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    try {
      this.worker = new Worker(url);
    } catch {
      layOutHere(); // Firefox reports a forbidden worker here
      return;
    } finally {
      setTimeout(() => URL.revokeObjectURL(url), 10_000);
    }
    this.worker.onmessage = ({ data }: MessageEvent<Layout>) => {
      this.cancel();
      done(data);
    };
    this.worker.onerror = (event) => {
      event.preventDefault();
      layOutHere(); // Chromium reports a forbidden worker here
    };
    this.busy(request.nodes.length);
    this.worker.postMessage(request);
  }
}
