// The page's side of its engine: a worker with Python, started at the first request.

import type { SendRequest, Question, Response } from "../request_channel";
import { button, h, replaceChildren } from "../dom";
import type { BranchMessage, Engine, EngineListener } from "../engine";
import type { RunProgramResult } from "../requests";
import type { BranchRequest } from "../what_if";
import type { PackedFile, FromWorker, ToWorker } from "./messages";
import source from "./worker";

type State =
  | { is: "asleep" }
  | { is: "starting"; text: string; done: number; of: number }
  | { is: "ready"; python: string; seconds: number }
  | { is: "failed"; text: string };

interface Waiting {
  resolve(answer: { answer: string; trace?: Uint8Array }): void;
  reject(error: Error): void;
}

const MEGABYTE = 1e6;

export class PageEngine implements Engine {
  readonly badge = h("span", { class: "live", role: "status" });
  playground?: () => void;
  private worker: Worker | null = null;
  private state: State = { is: "asleep" };
  private count = 0;
  private readonly waiting = new Map<number, Waiting>();
  private listener: EngineListener | null = null;
  private busySince = 0;
  private ticker: ReturnType<typeof setTimeout> | undefined;
  /** The branches that were sent; a restarted worker continues from them. */
  private rows: string[] = [];

  /** `trace`: the packed capture of the page; null for a page that creates its own. */
  constructor(private trace: Uint8Array | null) {
    this.draw();
  }

  // *** requests ***

  readonly ask: SendRequest = async <Q extends Question>(question: Q) => {
    const { answer } = await this.request((id) => ({ do: "ask", id, question: JSON.stringify(question) }));
    const response = JSON.parse(answer) as { error?: string };
    if (response.error !== undefined) throw new Error(response.error);
    return response as Response<Q>;
  };

  /** Runs a program; returns its result, and the trace of its computation. */
  async play(text: string, machine: string): Promise<{ played: RunProgramResult; trace?: Uint8Array }> {
    this.rows = [];
    const question: Question = { ask: "play", text, machine };
    const { answer, trace } = await this.request((id) => ({ do: "ask", id, question: JSON.stringify(question) }));
    const played = JSON.parse(answer) as RunProgramResult & { error?: string };
    if (played.error !== undefined) throw new Error(played.error);
    return { played, trace };
  }

  send(request: BranchRequest): void {
    if (request.ask === "cancel") {
      this.cancel();
      return;
    }
    // the next command names the branch from which it continues
    if (request.ask === "go" && this.worker === null) return;
    this.start();
    this.ask(request).catch((error: Error) => this.listener?.working({ error: error.message }));
  }

  setListener(listener: EngineListener): void {
    this.listener = listener;
  }

  private request(make: (id: number) => ToWorker): Promise<{ answer: string; trace?: Uint8Array }> {
    return new Promise((resolve, reject) => {
      this.count += 1;
      const id = this.count;
      this.waiting.set(id, { resolve, reject });
      this.start();
      this.post(make(id));
      this.watchLongRequest();
    });
  }

  private post(message: ToWorker): void {
    this.worker?.postMessage(message);
  }

  // *** start and end ***

  private start(): void {
    if (this.worker !== null) return;
    const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const worker = new Worker(url);
    this.worker = worker;
    worker.onmessage = ({ data }: MessageEvent<FromWorker>) => {
      URL.revokeObjectURL(url); // the worker has read it
      this.take(data);
    };
    worker.onerror = (event) => this.fail(event.message || "this browser cannot start a worker");
    this.setState({ is: "starting", text: "unpacking Python", done: 0, of: 0 });
    this.post({ do: "start", files: readPackedFiles(), trace: this.trace, recorded: JSON.stringify(this.rows) });
  }

  /** Ends Python's work; the next request restarts it. */
  cancel(text = "cancelled. The next request restarts Python"): void {
    this.worker?.terminate();
    this.worker = null;
    this.setState({ is: "asleep" });
    this.end(text);
  }

  private fail(text: string): void {
    this.worker?.terminate();
    this.worker = null;
    this.setState({ is: "failed", text });
    this.end(`Python does not run in this browser: ${text}`);
  }

  private end(text: string): void {
    const left = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject } of left) reject(new Error(text));
    this.listener?.working({ error: text });
    this.watchLongRequest();
  }

  private take(data: FromWorker): void {
    switch (data.type) {
      case "progress":
        this.setState({ is: "starting", text: data.text, done: data.done, of: data.of });
        return;
      case "ready":
        this.setState({ is: "ready", python: data.python, seconds: data.seconds });
        return;
      case "failed":
        this.fail(data.text);
        return;
      case "branches": {
        const message = JSON.parse(data.data) as BranchMessage;
        this.rows.push(...message.rows);
        this.listener?.branches(message);
        return;
      }
      case "working":
        this.listener?.working(JSON.parse(data.data) as object);
        return;
      default: {
        const waiting = this.waiting.get(data.id);
        this.waiting.delete(data.id);
        waiting?.resolve({ answer: data.answer, ...(data.trace === undefined ? {} : { trace: data.trace }) });
        this.watchLongRequest();
      }
    }
  }

  // *** sending ***

  private setState(state: State): void {
    this.state = state;
    this.draw();
  }

  /** Shows how to cancel a request that takes long. */
  private watchLongRequest(): void {
    clearTimeout(this.ticker);
    this.busySince = this.waiting.size === 0 ? 0 : this.busySince || performance.now();
    this.draw();
    if (this.waiting.size > 0) this.ticker = setTimeout(() => this.draw(), 1200);
  }

  private draw(): void {
    const { badge, state } = this;
    badge.dataset.state = state.is;
    document.documentElement.dataset.live = state.is;
    if (state.is === "starting") {
      const share =
        state.of > 0 ? `${(state.done / MEGABYTE).toFixed(1)} of ${(state.of / MEGABYTE).toFixed(1)} MB` : "";
      const bar = h(
        "progress",
        state.of > 0 ? { max: state.of, value: state.done, "aria-label": state.text } : { "aria-label": state.text },
      );
      replaceChildren(badge, bar, h("span", {}, `${state.text} ${share}`.trim()), this.stop());
    } else if (state.is === "ready") {
      const busy = this.busySince > 0 && performance.now() - this.busySince > 1000;
      const title = `This page includes the engine and works offline. The engine started in ${state.seconds.toFixed(1)} s. Its times are those of the interpreter.`;
      replaceChildren(
        badge,
        h("span", { class: "dot" }),
        h("span", { title }, busy ? "Python computes …" : `Python ${state.python}, in this page`),
        busy ? this.stop() : null,
      );
    } else if (state.is === "failed") {
      const again = button("Again", "Start Python again", () => {
        this.start();
      });
      replaceChildren(
        badge,
        h("span", { role: "alert", title: state.text }, `Python does not start: ${state.text}`),
        again,
      );
    } else {
      const size = measurePackedFiles();
      replaceChildren(
        badge,
        h("span", { class: "dot" }),
        h(
          "span",
          {
            title: `This page includes the engine, ${size} MB. The first request that needs Python unpacks the engine`,
          },
          "page with engine",
        ),
      );
    }
  }

  private stop(): HTMLElement {
    return button("Cancel", "Stops Python. The next request restarts Python", () => this.cancel(), "quiet");
  }
}

function findBlocks(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>("[data-carried]")];
}

function readPackedFiles(): PackedFile[] {
  return findBlocks().map((block) => ({ name: block.dataset.carried!, text: block.textContent ?? "" }));
}

function measurePackedFiles(): string {
  return (findBlocks().reduce((sum, block) => sum + (block.textContent ?? "").length * 0.8, 0) / MEGABYTE).toFixed(1);
}
