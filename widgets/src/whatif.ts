// The branches of a trace, and where each kernel's reader is. Commands go to Python where one answers; what was recorded
// is walked without.

import type { Branch, KernelVariant, OptLaw, ScheduleVariant } from "./model";
import type { TraceIndex } from "./provenance";
import type { BeginRequest, CancelRequest, DoRequest, GoRequest } from "./requests";

/** A command of tinyexplore.explore.whatif: its kind, and its arguments by name. */
export type Command = { kind: string } & Record<string, string | number>;

/** What is said to Python. */
export type Sent = DoRequest | BeginRequest | GoRequest | CancelRequest;

/** What Python is at: as text, and how far it is. */
export interface Working {
  text: string;
  done: number;
  of: number;
  /** Whether it can be cancelled. */
  cancel: boolean;
}

/** Branches where readers are: their numbers, by "kernel 0", "schedule 4". */
export type Places = Readonly<Record<string, number>>;

export class WhatIf {
  branches: readonly Branch[];
  readonly laws: readonly OptLaw[];
  /** Null in a page, and where no kernel is: then only what was recorded can be walked. */
  send: ((request: Sent) => void) | null = null;
  /** Whether what answers is in the page: it counts UOps, and has no times of the machine that was captured. */
  inPage = false;
  working: Working | null = null;
  /** What went wrong with the last command, if something did. */
  complaint = "";
  private readonly places = new Map<number, number>();
  private readonly schedulePlaces = new Map<number, number>();
  private readonly bases = new Map<number, number>();
  private readonly listeners = new Set<() => void>();

  constructor(index: TraceIndex) {
    this.branches = index.trace.branches;
    this.laws = index.trace.laws;
    for (const branch of this.branches)
      if (branch.kernel !== null && isWhole(branch)) this.places.set(branch.kernel, branch.id);
    for (const branch of this.branches)
      if (branch.schedule !== null && branch.status === "done")
        this.schedulePlaces.set(branch.schedule.stage, branch.id);
  }

  // *** asking ***

  of(kernel: number): Branch[] {
    return this.branches.filter((branch) => branch.kernel === kernel);
  }

  /** The branches about a schedule, given by the stage that made it. */
  ofSchedule(schedule: number): Branch[] {
    return this.branches.filter(({ command }) =>
      command.arguments.some(([name, value]) => name === "schedule" && value === schedule),
    );
  }

  atSchedule(schedule: number): Branch | null {
    return this.branches[this.schedulePlaces.get(schedule) ?? -1] ?? null;
  }

  /** The branch of a schedule with exactly these cuts and joins. */
  withOverrides(schedule: number, cut: readonly number[], join: readonly number[]): Branch | null {
    const text = (variant: Pick<ScheduleVariant, "cut" | "join">): string =>
      JSON.stringify([variant.cut, variant.join]);
    const sorted = (nodes: readonly number[]): number[] => [...new Set(nodes)].sort((a, b) => a - b);
    const wanted = text({ cut: sorted(cut), join: sorted(join) });
    return (
      this.ofSchedule(schedule).find(
        (one) => one.status === "done" && one.schedule !== null && text(one.schedule) === wanted,
      ) ?? null
    );
  }

  /** Where the reader of `kernel` is; null where nothing was asked of it yet. */
  at(kernel: number): Branch | null {
    const place = this.places.get(kernel);
    return place === undefined ? null : (this.branches[place] ?? null);
  }

  /** What the open branch is compared with: what the reader chose, else the one that it came from. */
  base(kernel: number): Branch | null {
    const chosen = this.bases.get(kernel);
    const at = this.at(kernel);
    const found = chosen ?? at?.parent ?? null;
    return found === null || found === at?.id ? null : (this.branches[found] ?? null);
  }

  hasOwnBase(kernel: number): boolean {
    return this.bases.has(kernel);
  }

  /** The branch of `kernel` with exactly these opts, whole. */
  withOpts(kernel: number, opts: readonly string[]): Branch | null {
    const wanted = opts.join(";");
    return (
      this.of(kernel).find(
        (branch) => isWhole(branch) && branch.edited === null && branch.kernels[0].opts.join(";") === wanted,
      ) ?? null
    );
  }

  lawsOf(op: string): OptLaw[] {
    return this.laws.filter(({ name }) => name === op);
  }

  // *** doing ***

  /** One more opt: what is known is shown at once. */
  apply(kernel: number, opt: string): void {
    const at = this.at(kernel);
    if (at === null) return;
    const known = this.withOpts(kernel, [...at.kernels[0].opts, opt]);
    if (known !== null) this.go(known);
    else this.ask({ kind: "ApplyOpt", kernel, opt }, `compiling with ${opt}`);
  }

  undo(kernel: number): void {
    const at = this.at(kernel);
    if (at === null) return;
    const before = at.edited === null || at.parent === null ? null : this.branches[at.parent];
    const known = before ?? this.withOpts(kernel, at.kernels[0].opts.slice(0, -1));
    if (known !== null) this.go(known);
    else this.ask({ kind: "UndoOpt", kernel }, "compiling without the last opt");
  }

  go(branch: Branch): void {
    if (branch.schedule !== null) this.goSchedule(branch, branch.schedule.stage);
    if (branch.kernel === null || branch.status === "failed" || branch.kernels.length === 0) return;
    if (!isWhole(branch)) {
      const opts = branch.kernels[0].opts.join(", ");
      this.ask({ kind: "SetOpts", kernel: branch.kernel, opts }, "compiling what the search timed");
      return;
    }
    if (this.places.get(branch.kernel) === branch.id) return;
    this.places.set(branch.kernel, branch.id);
    this.send?.({ ask: "go", branch: branch.id });
    this.tell();
  }

  private goSchedule(branch: Branch, schedule: number): void {
    if (branch.status === "failed" || this.schedulePlaces.get(schedule) === branch.id) return;
    this.schedulePlaces.set(schedule, branch.id);
    this.complaint = "";
    this.send?.({ ask: "go", branch: branch.id });
    this.tell();
  }

  /** Compares the open branch with `branch` from now on; null: with the branch that it came from. */
  compareWith(kernel: number, branch: Branch | null): void {
    if (branch === null) this.bases.delete(kernel);
    else this.bases.set(kernel, branch.id);
    this.tell();
  }

  /** Hands a command to Python; `text` says what is being done until it answers. `from`: the branch to go on from, else
   *  the one at which the reader of its kernel is. */
  ask(command: Command, text: string, from?: number | null): void {
    if (this.send === null) return;
    const kernel = typeof command.kernel === "number" ? command.kernel : null;
    const at =
      kernel !== null
        ? this.at(kernel)
        : typeof command.schedule === "number"
          ? this.atSchedule(command.schedule)
          : null;
    this.working = { text, done: 0, of: 0, cancel: true };
    this.complaint = "";
    this.send({ ask: "command", command, branch: from === undefined ? (at?.id ?? null) : from });
    this.tell();
  }

  /** Has a kernel compiled and timed as captured, without opts, and by the heuristics. */
  begin(kernel: number, text: string): void {
    if (this.send === null) return;
    this.working = { text, done: 0, of: 0, cancel: true };
    this.send({ ask: "begin", kernel });
    this.tell();
  }

  cancel(): void {
    this.send?.({ ask: "cancel" });
  }

  // *** hearing ***

  connect(send: WhatIf["send"]): void {
    this.send = send;
    this.tell();
  }

  /** Appends branches; one of a known number says more of that branch. Then readers are at `places`. */
  take(rows: readonly Branch[], places: Places): void {
    const branches = [...this.branches];
    for (const branch of rows) branches[branch.id] = branch;
    this.branches = branches;
    for (const [name, branch] of Object.entries(places)) {
      const [kind, number] = name.split(" ");
      (kind === "kernel" ? this.places : this.schedulePlaces).set(Number(number), branch);
    }
    this.tell();
  }

  /** What Python says that it is doing; null when it is done. */
  hear(working: Working | null, complaint: string): void {
    this.working = working;
    this.complaint = complaint;
    this.tell();
  }

  /** Calls `listener` after every change, until what is returned is called. */
  listen(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  private tell(): void {
    for (const listener of [...this.listeners]) listener();
  }
}

/** Whether a branch has all that the tuner draws; of what a search timed there is only the time. */
export function isWhole(branch: Branch): boolean {
  return branch.status === "done" && branch.kernels.length > 0 && branch.kernels[0].listings.length > 0;
}

/** Whether only a search has tried a branch: its time is the search's own, and compares with no other branch's. */
export function isSearched({ kernels }: Branch): boolean {
  return kernels.length > 0 && kernels[0].name === "" && kernels[0].listings.length === 0;
}

export function variantOf(branch: Branch | null): KernelVariant | null {
  return branch?.kernels[0] ?? null;
}

/** "UPCAST(0, 4)"; the amount 0 is not written. */
export function optText(op: string, axis: number, amount: number): string {
  return amount === 0 ? `${op}(${axis})` : `${op}(${axis}, ${amount})`;
}

const known = new WeakMap<TraceIndex, WhatIf>();

/** The branches of a trace, the same for all views of it. */
export function whatIfOf(index: TraceIndex): WhatIf {
  let found = known.get(index);
  if (found === undefined) {
    found = new WhatIf(index);
    known.set(index, found);
  }
  return found;
}
