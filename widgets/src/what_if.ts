// The branches of a trace, and the current branch of each kernel. Commands go to Python if it responds; otherwise
// recorded branches are shown.

import type { Branch, KernelVariant, OptEffect, ScheduleVariant } from "./model";
import type { TraceIndex } from "./trace_index";
import type { BeginRequest, CancelRequest, DoRequest, GoRequest } from "./requests";

/** A command of tinyexplore.explore.whatif: its kind, and its arguments by name. */
export type Command = { kind: string } & Record<string, string | number>;

/** The requests that are sent to Python. */
export type BranchRequest = DoRequest | BeginRequest | GoRequest | CancelRequest;

/** Python's current work: a text, and its progress. */
export interface Progress {
  text: string;
  done: number;
  of: number;
  /** Whether it can be cancelled. */
  cancel: boolean;
}

/** The numbers of the current branches, by "kernel 0", "schedule 4". */
export type CurrentBranches = Readonly<Record<string, number>>;

export class WhatIf {
  branches: readonly Branch[];
  readonly laws: readonly OptEffect[];
  /** Null in a page, and without a kernel process: then only recorded branches are available. */
  send: ((request: BranchRequest) => void) | null = null;
  /** Whether the engine is in the page: it counts UOps, and has no times of the captured machine. */
  inPage = false;
  working: Progress | null = null;
  /** The error of the last command, "" for none. */
  error = "";
  private readonly places = new Map<number, number>();
  private readonly schedulePlaces = new Map<number, number>();
  private readonly bases = new Map<number, number>();
  private readonly listeners = new Set<() => void>();

  constructor(index: TraceIndex) {
    this.branches = index.trace.branches;
    this.laws = index.trace.laws;
    for (const branch of this.branches)
      if (branch.kernel !== null && isFull(branch)) this.places.set(branch.kernel, branch.id);
    for (const branch of this.branches)
      if (branch.schedule !== null && branch.status === "done")
        this.schedulePlaces.set(branch.schedule.stage, branch.id);
  }

  // *** queries ***

  of(kernel: number): Branch[] {
    return this.branches.filter((branch) => branch.kernel === kernel);
  }

  /** Returns the branches of a schedule, given by its stage. */
  ofSchedule(schedule: number): Branch[] {
    return this.branches.filter(({ command }) =>
      command.arguments.some(([name, value]) => name === "schedule" && value === schedule),
    );
  }

  atSchedule(schedule: number): Branch | null {
    return this.branches[this.schedulePlaces.get(schedule) ?? -1] ?? null;
  }

  /** Returns the branch of a schedule with exactly these cuts and joins. */
  withOverrides(schedule: number, cut: readonly number[], join: readonly number[]): Branch | null {
    const text = (variant: Pick<ScheduleVariant, "cut" | "join">): string =>
      JSON.stringify([variant.cut, variant.join]);
    const sorted = (nodes: readonly number[]): number[] => [...new Set(nodes)].sort((a, b) => a - b);
    const target = text({ cut: sorted(cut), join: sorted(join) });
    return (
      this.ofSchedule(schedule).find(
        (branch) => branch.status === "done" && branch.schedule !== null && text(branch.schedule) === target,
      ) ?? null
    );
  }

  /** Returns the current branch of `kernel`; null before its first command. */
  currentBranch(kernel: number): Branch | null {
    const current = this.places.get(kernel);
    return current === undefined ? null : (this.branches[current] ?? null);
  }

  /** Returns the branch that the open one is compared with: the user's choice, else its parent. */
  base(kernel: number): Branch | null {
    const chosen = this.bases.get(kernel);
    const current = this.currentBranch(kernel);
    const baseId = chosen ?? current?.parent ?? null;
    return baseId === null || baseId === current?.id ? null : (this.branches[baseId] ?? null);
  }

  hasOwnBase(kernel: number): boolean {
    return this.bases.has(kernel);
  }

  /** Returns the complete branch of `kernel` with exactly these opts. */
  withOpts(kernel: number, opts: readonly string[]): Branch | null {
    const target = opts.join(";");
    return (
      this.of(kernel).find(
        (branch) => isFull(branch) && branch.edited === null && branch.kernels[0].opts.join(";") === target,
      ) ?? null
    );
  }

  lawsOf(op: string): OptEffect[] {
    return this.laws.filter(({ name }) => name === op);
  }

  // *** commands ***

  /** Adds one opt; an existing branch is shown immediately. */
  apply(kernel: number, opt: string): void {
    const current = this.currentBranch(kernel);
    if (current === null) return;
    const existing = this.withOpts(kernel, [...current.kernels[0].opts, opt]);
    if (existing !== null) this.go(existing);
    else this.ask({ kind: "ApplyOpt", kernel, opt }, `compiling with ${opt}`);
  }

  undo(kernel: number): void {
    const current = this.currentBranch(kernel);
    if (current === null) return;
    const before = current.edited === null || current.parent === null ? null : this.branches[current.parent];
    const existing = before ?? this.withOpts(kernel, current.kernels[0].opts.slice(0, -1));
    if (existing !== null) this.go(existing);
    else this.ask({ kind: "UndoOpt", kernel }, "compiling without the last opt");
  }

  go(branch: Branch): void {
    if (branch.schedule !== null) this.goSchedule(branch, branch.schedule.stage);
    if (branch.kernel === null || branch.status === "failed" || branch.kernels.length === 0) return;
    if (!isFull(branch)) {
      const opts = branch.kernels[0].opts.join(", ");
      this.ask({ kind: "SetOpts", kernel: branch.kernel, opts }, "compiling the candidate of the search");
      return;
    }
    if (this.places.get(branch.kernel) === branch.id) return;
    this.places.set(branch.kernel, branch.id);
    this.send?.({ ask: "go", branch: branch.id });
    this.notify();
  }

  private goSchedule(branch: Branch, schedule: number): void {
    if (branch.status === "failed" || this.schedulePlaces.get(schedule) === branch.id) return;
    this.schedulePlaces.set(schedule, branch.id);
    this.error = "";
    this.send?.({ ask: "go", branch: branch.id });
    this.notify();
  }

  /** Compares the open branch with `branch` from now on; null selects its parent. */
  compareWith(kernel: number, branch: Branch | null): void {
    if (branch === null) this.bases.delete(kernel);
    else this.bases.set(kernel, branch.id);
    this.notify();
  }

  /**
   * Sends a command to Python. `text`: the progress until the response. `from`: the branch to continue, by default the
   * current one.
   */
  ask(command: Command, text: string, from?: number | null): void {
    if (this.send === null) return;
    const kernel = typeof command.kernel === "number" ? command.kernel : null;
    const current =
      kernel !== null
        ? this.currentBranch(kernel)
        : typeof command.schedule === "number"
          ? this.atSchedule(command.schedule)
          : null;
    this.working = { text, done: 0, of: 0, cancel: true };
    this.error = "";
    this.send({ ask: "command", command, branch: from === undefined ? (current?.id ?? null) : from });
    this.notify();
  }

  /** Compiles and times a kernel as captured, without opts, and with the heuristics. */
  begin(kernel: number, text: string): void {
    if (this.send === null) return;
    this.working = { text, done: 0, of: 0, cancel: true };
    this.send({ ask: "begin", kernel });
    this.notify();
  }

  cancel(): void {
    this.send?.({ ask: "cancel" });
  }

  // *** messages from Python ***

  connect(send: WhatIf["send"]): void {
    this.send = send;
    this.notify();
  }

  /** Appends branches, or replaces those with a known number; then updates the current branches to `places`. */
  addBranches(rows: readonly Branch[], places: CurrentBranches): void {
    const branches = [...this.branches];
    for (const branch of rows) branches[branch.id] = branch;
    this.branches = branches;
    for (const [name, branch] of Object.entries(places)) {
      const [kind, number] = name.split(" ");
      (kind === "kernel" ? this.places : this.schedulePlaces).set(Number(number), branch);
    }
    this.notify();
  }

  /** Updates Python's progress; null when it is done. */
  setProgress(working: Progress | null, error: string): void {
    this.working = working;
    this.error = error;
    this.notify();
  }

  /** Calls `listener` after every change; returns a function that stops this. */
  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private notify(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

/** Whether a branch has all data of the tuner; a candidate of a search has only its time. */
export function isFull(branch: Branch): boolean {
  return branch.status === "done" && branch.kernels.length > 0 && branch.kernels[0].listings.length > 0;
}

/** Whether only a search has tried a branch: its time compares only with others of that search. */
export function isSearched({ kernels }: Branch): boolean {
  return kernels.length > 0 && kernels[0].name === "" && kernels[0].listings.length === 0;
}

export function variantOf(branch: Branch | null): KernelVariant | null {
  return branch?.kernels[0] ?? null;
}

/** Returns an opt as text: "UPCAST(0, 4)"; the amount 0 is omitted. */
export function optText(op: string, axis: number, amount: number): string {
  return amount === 0 ? `${op}(${axis})` : `${op}(${axis}, ${amount})`;
}

const whatIfOfIndex = new WeakMap<TraceIndex, WhatIf>();

/** Returns the branches of a trace, one object for all views. */
export function whatIfOf(index: TraceIndex): WhatIf {
  let whatIf = whatIfOfIndex.get(index);
  if (whatIf === undefined) {
    whatIf = new WhatIf(index);
    whatIfOfIndex.set(index, whatIf);
  }
  return whatIf;
}
