// Layouts of large graphs in a worker: the page goes on meanwhile, and a newer graph takes the place of an older one.

import type { Layout } from "./layout";
import { type LayoutRequest, arranged, source } from "./layouts";

const AT_ONCE = 450; // boxes; fewer take less than a worker's start, and a step does not flicker
const PATIENCE = 0.1; // seconds for sweeps where no worker may start

export class Layouter {
  private worker: Worker | null = null;
  private static isForbidden = false; // to start workers, by a page's policy

  /** `busy`: gets the number of boxes when a layout begins in a worker, and null when it has ended. */
  constructor(private readonly busy: (boxes: number | null) => void) {}

  /** Calls `done` with the layout: at once for a small graph, else later, unless another one is requested before. */
  lay(request: LayoutRequest, done: (made: Layout) => void): void {
    this.cancel();
    if (request.nodes.length <= AT_ONCE) done(arranged(request));
    else if (source !== "" && typeof Worker === "function" && !Layouter.isForbidden) this.work(request, done);
    else done(arranged({ ...request, patience: PATIENCE }));
  }

  cancel(): void {
    if (this.worker === null) return;
    this.worker.terminate();
    this.worker = null;
    this.busy(null);
  }

  private work(request: LayoutRequest, done: (made: Layout) => void): void {
    const here = (): void => {
      Layouter.isForbidden = true;
      this.cancel();
      this.lay(request, done);
    };
    const text = `const { arranged } = (${source})(); onmessage = ({ data }) => postMessage(arranged(data));`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    try {
      this.worker = new Worker(url);
    } catch {
      here(); // forbidden, says Firefox
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
      here(); // forbidden, says Chromium
    };
    this.busy(request.nodes.length);
    this.worker.postMessage(request);
  }
}
