// LLVM's passes on a kernel: the text after each, its time and remarks, and a comparison with another pipeline.
// Requested from Python; a page shows stored responses.

import { LatestRequest, makeNote, findProgramKernel } from "../latest_request";
import { unpackTexts as unpackedTexts } from "../columns";
import { button, h, replaceChildren, tab, tabList } from "../dom";
import { count, duration } from "../format";
import { kernelTitle } from "../kernel_labels";
import type {
  PassData,
  PassesData,
  PassesOfLLVMRequest,
  PipelineTimes,
  Spill,
  TimesOfPipelineRequest,
} from "../requests";
import type { Change, Store, View } from "../store";
import { type TextPosition, findLineHistory } from "../stage_text_search";
import { type DiffLine, TextDiffView } from "./text_diff";
import { TextSearchField } from "./text_search_field";

const MOST_SPILLED = 4; // UOps
const LANGUAGE: Record<string, string> = { IR: "llvm", "machine IR": "mir", assembly: "asm" };
const OWN = "as compiled";

type PassLine = DiffLine & { uop: number | null };

interface Pipeline {
  level: string;
  without: readonly string[];
  cpu: string;
}

/** Returns the running sums of differences. */
function sumUp(differences: readonly number[]): number[] {
  let sum = 0;
  return differences.map((difference) => {
    sum += difference;
    return sum;
  });
}

/** Returns the texts of all passes, reconstructed from the edits of each. */
export function listPassTexts({ lines, line_uops, passes, uops }: PassesData): PassLine[][] {
  const nodesOf = new Map<number, number[]>();
  const uopAt = sumUp(uops.map(([step]) => step));
  const nodeAt = sumUp(uops.flatMap(([, ...nodes]) => nodes));
  let used = 0;
  uops.forEach(([, ...nodes], i) => {
    nodesOf.set(uopAt[i], nodeAt.slice(used, used + nodes.length));
    used += nodes.length;
  });
  const uopOf = sumUp(line_uops);
  const makeLines = (unpackedTexts(lines) ?? []).map((text, i): PassLine => {
    const uop = uopOf[i] < 0 ? null : uopOf[i];
    return { text: String(text), uop, nodes: uop === null ? [] : (nodesOf.get(uop) ?? []) };
  });
  let now: PassLine[] = [];
  return passes.map(({ edits }) => {
    if (edits.length === 0) return now;
    const next: PassLine[] = [];
    let copied = 0;
    for (const [first, removed, ...added] of edits) {
      next.push(...now.slice(copied, first), ...sumUp(added).map((line) => makeLines[line]));
      copied = first + removed;
    }
    next.push(...now.slice(copied));
    now = next;
    return now;
  });
}

const DEFINED = /^\s*(?:renamable )?([%$@][\w.$-]+)(?::\w+)*(?:\([^)]*\))? = |^\s*([\w.%$-]+):(?:\s|$)/;

/**
 * Returns the texts of the passes that changed something, each line with its origin in the previous text: an unchanged
 * line by position, another one by the name that it defines.
 */
export function linkTexts(
  { passes }: PassesData,
  texts: readonly PassLine[][],
): {
  id: number;
  language: string;
  before: number | null;
  lines: { text: string; nodes: number[]; origin: number | null }[];
}[] {
  let last: number | null = null;
  return passes.map(({ number, stage, changed, begins, edits }) => {
    const before = begins ? null : last;
    if (!changed) return { id: number, language: LANGUAGE[stage], before, lines: [] };
    last = number;
    const origins: (number | null)[] = [];
    let copied = 0;
    const keep = (end: number): void => {
      for (; copied < end; copied += 1) origins.push(copied);
    };
    for (const [first, removed, ...added] of edits) {
      keep(first);
      for (const _ of added) origins.push(null);
      copied = first + removed;
    }
    const old = before === null ? [] : texts[before];
    keep(old.length);
    const names = new Map<string, number>();
    old.forEach(({ text }, line) => {
      const name = nameIn(text);
      if (name !== null && !names.has(name)) names.set(name, line);
    });
    const lines = texts[number].map(({ text, uop }, line) => ({
      text,
      nodes: uop === null ? [] : [uop],
      origin: before === null ? null : (origins[line] ?? names.get(nameIn(text) ?? "") ?? null),
    }));
    return { id: number, language: LANGUAGE[stage], before, lines };
  });
}

function nameIn(text: string): string | null {
  const match = DEFINED.exec(text);
  return match === null ? null : (match[1] ?? match[2]);
}

export class LLVMPassesView implements View {
  readonly element = h("div", { class: "llvm" });
  private readonly head = h("div", { class: "steps" });
  private readonly list = h("div", {
    class: "passes scroll",
    role: "listbox",
    tabindex: 0,
    "aria-label": "LLVM's passes",
  });
  private readonly hide = h("div", { class: "hide" });
  private readonly bar = h("div", { class: "bar" });
  private readonly diff: TextDiffView;
  private readonly body = h("div", { class: "body" });
  private readonly latestRequest: LatestRequest;
  private readonly comparing: LatestRequest;
  private kernel: number | null = null;
  private pipeline: Pipeline = { level: "", without: [], cpu: "" };
  private data: PassesData | null = null;
  private texts: PassLine[][] = [];
  private other: { level: string; found: PassesData; texts: PassLine[][] } | null = null;
  private chosen = 0;
  private readonly finder: TextSearchField;
  private readonly timing: LatestRequest;
  private times: PipelineTimes | null = null;
  private line: TextPosition | null = null; // the line that was selected last
  private showsAll = false;
  private isWhole = false;

  constructor(private readonly store: Store) {
    this.latestRequest = new LatestRequest(store, this.element);
    this.comparing = new LatestRequest(store, this.element);
    this.timing = new LatestRequest(store, this.head);
    this.diff = new TextDiffView(store);
    this.diff.onChoose = (side, line) => {
      const before = this.data!.passes.findLast(({ changed, number }) => changed && number < this.chosen)?.number ?? 0;
      this.line = { text: side === "after" ? this.chosen : before, line };
      this.diff.caret(side, line);
      this.drawBar();
    };
    this.finder = new TextSearchField({
      texts: () => this.data?.passes.map(({ changed, number }) => (changed ? this.texts[number] : [])) ?? [],
      at: () => (this.line?.text === this.chosen ? this.line : { text: this.chosen, line: -1 }),
      show: (place) => this.goTo(place),
      mark: () => this.diff.find((line) => this.finder.hits(line)),
    });
    this.body.append(
      h("div", { class: "side" }, this.hide, this.list),
      h("div", { class: "stagetext" }, this.bar, this.diff.element),
    );
    this.list.addEventListener("keydown", (event) => this.walk(event));
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor) this.draw();
    this.diff.update(change);
  }

  private draw(): void {
    const { cursor } = this.store;
    const kernel = findProgramKernel(this.store);
    if (cursor.panel !== "llvm" || kernel === this.kernel) return;
    this.kernel = kernel;
    this.chosen = 0;
    this.pipeline = { level: "", without: [], cpu: "" };
    this.other = null;
    this.request();
  }

  private makeQuestion(level: string, pipeline = this.pipeline): PassesOfLLVMRequest {
    const { without, cpu } = pipeline;
    return { ask: "passes", kernel: this.kernel ?? 0, level, without: [...without], cpu };
  }

  private request(): void {
    const kernel = this.kernel ?? 0;
    this.line = null;
    this.times = this.store.responses.get(this.timeQuestion()) ?? null;
    void this.latestRequest.send({
      request: this.makeQuestion(this.pipeline.level),
      pendingText: "LLVM compiles the kernel, and prints it after each pass …",
      offlineNote: [
        "This page has no LLVM passes of this kernel. To store them, call this before you save the page: ",
        `view.kernels[${kernel}].passes()`,
      ],
      show: (found) => this.show(found),
      showNote: (text, code) => this.showNote(text, code),
      onError: () => (this.kernel = this.data === null ? null : kernel),
    });
  }

  private timeQuestion(): TimesOfPipelineRequest {
    return { ...this.makeQuestion(this.pipeline.level), ask: "pipeline times" };
  }

  /** Requests times of the kernel under this pipeline. */
  private time(): void {
    const showNote = (reason: string): void => {
      this.times = { reason } as PipelineTimes;
      this.drawHead();
    };
    const request = this.timeQuestion();
    void this.timing.send({
      request,
      pendingText: "",
      offlineNote: ["A page cannot time the kernel. A notebook can.", ""],
      show: (times) => {
        // another pipeline was selected meanwhile
        if (JSON.stringify(request) !== JSON.stringify(this.timeQuestion())) return;
        this.times = times;
        this.drawHead();
      },
      showNote,
      onError: () => undefined,
    });
    this.head.querySelector(".run-time")!.textContent = "running …";
  }

  private runTime(): HTMLElement {
    const { times } = this;
    const status = h("span", { class: "run-time", role: "status" });
    if (times === null) return status;
    const { reason = "", results = "", verdict = "unknown" } = times;
    const [median, base] = [times.median_us ?? null, times.base_median_us ?? null];
    if (reason !== "" || median === null || base === null) {
      status.textContent = `not timed: ${reason || "there are no samples"}`;
      return status;
    }
    const spread = (low: number | null | undefined, high: number | null | undefined): string =>
      low == null || high == null ? "" : ` (${duration(low)} to ${duration(high)})`;
    const says: Record<string, string> = { noise: "no difference beyond noise", unknown: "too few samples" };
    status.title = `${count(times.times_us?.length ?? 0, "sample")} of each, interleaved. Results: ${results || "not compared"}.`;
    status.append(
      h("b", {}, `runs in ${duration(median)}`),
      `${spread(times.low_us, times.high_us)} · as compiled ${duration(base)}${spread(times.base_low_us, times.base_high_us)}: `,
      h("b", { class: verdict }, says[verdict] ?? verdict),
    );
    return status;
  }

  private showNote(text: string, code = ""): void {
    this.data = null;
    replaceChildren(this.element, this.head, makeNote(text, code));
    this.drawHead();
  }

  private show(data: PassesData): void {
    const before = this.data?.passes[this.chosen];
    this.data = data;
    this.texts = listPassTexts(data);
    const same = before && data.passes.find(({ name, changed }) => changed && name === before.name);
    const first = data.passes.find(({ changed, begins }) => changed && !begins);
    this.chosen = same?.number ?? first?.number ?? 0;
    replaceChildren(this.element, this.head, this.body);
    this.drawAll();
  }

  private drawAll(): void {
    this.drawHead();
    this.drawList();
    this.drawText();
  }

  // *** options of LLVM ***

  private drawHead(): void {
    const { data, store } = this;
    const { level, without, cpu } = this.pipeline;
    const levels = this.listOffered();
    const isOne = levels.length < 2;
    const choice = (
      label: string,
      value: string,
      names: [string, string][],
      change: (value: string) => void,
    ): Element => {
      const options = names.map(([key, text]) => h("option", { value: key, selected: key === value }, text));
      const select = h(
        "select",
        { "aria-label": label, onchange: (event: Event) => change((event.target as HTMLSelectElement).value) },
        ...options,
      );
      return h("label", {}, h("span", { class: "faint" }, label), " ", select);
    };
    const named = levels.map((option): [string, string] => [option, option === "" ? OWN : `-${option}`]);
    const cpus = [["", "that of the capture"], ...(data?.cpus ?? []).map((name) => [name, name])] as [string, string][];
    if (cpu !== "" && !cpus.some(([name]) => name === cpu)) cpus.push([cpu, cpu]);
    const chips = without.map((name) =>
      button(
        `${name} ✕`,
        `Run ${name} again`,
        () => this.ask({ without: without.filter((other) => other !== name) }),
        "chip-off",
      ),
    );
    replaceChildren(
      this.head,
      h("b", {}, kernelTitle(store.index.trace, this.kernel ?? 0)),
      isOne ? null : choice("pipeline", level, named, (value) => this.ask({ level: value })),
      store.sendRequest === null ? null : choice("CPU", cpu, cpus, (value) => this.ask({ cpu: value })),
      data === null || isOne
        ? null
        : choice(
            "beside",
            this.other?.level ?? "none",
            [["none", "nothing"], ...named.filter(([option]) => option !== level)],
            (value) => this.compare(value),
          ),
      chips.length > 0 ? h("span", { class: "faint" }, "without") : null,
      ...chips,
      data === null || store.sendRequest === null
        ? null
        : button(
            "run and time",
            "Run the kernel as this pipeline compiles it, alternately with the kernel as compiled",
            () => this.time(),
          ),
      h("span", { class: "space" }),
      data === null ? null : h("span", { class: "faint", role: "status" }, summaryOf(data)),
      data === null ? null : this.runTime(),
    );
  }

  /** Returns the available pipelines; in a page, the stored ones. */
  private listOffered(): string[] {
    const { sendRequest, responses } = this.store;
    const levels = ["", ...(this.data?.levels ?? ["O0", "O1", "O2", "O3"])];
    if (sendRequest !== null) return levels;
    const stored = responses
      .of("passes")
      .filter(
        ([{ kernel = 0, without = [], cpu = "" }]) => kernel === this.kernel && without.length === 0 && cpu === "",
      );
    return levels.filter((name) => stored.some(([{ level = "" }]) => level === name));
  }

  private ask(change: Partial<Pipeline>): void {
    this.pipeline = { ...this.pipeline, ...change };
    this.other = null;
    this.request();
  }

  /** Compares the kernel with another pipeline's result. */
  private compare(level: string): void {
    if (level === "none") {
      this.other = null;
      return this.drawAll();
    }
    void this.comparing.send({
      request: this.makeQuestion(level, { ...this.pipeline, without: [] }),
      pendingText: "",
      offlineNote: [
        "This page does not store that pipeline. A notebook runs it: ",
        `view.kernels[${this.kernel}].passes("${level}")`,
      ],
      show: (found) => {
        this.other = { level, found, texts: listPassTexts(found) };
        this.chosen = this.data!.passes.length - 1;
        this.drawAll();
      },
      showNote: (text, code) => {
        this.other = null;
        this.drawAll();
        this.diff.element.prepend(makeNote(text, code));
      },
      onError: () => undefined,
    });
  }

  // *** the passes ***

  private listShown(): PassData[] {
    return this.data!.passes.filter(({ changed, number }) => changed || this.showsAll || number === this.chosen);
  }

  private drawList(): void {
    const passes = this.listShown();
    const idle = this.data!.passes.filter(({ changed }) => !changed).length;
    const longest = Math.max(...this.data!.passes.map(({ seconds }) => seconds ?? 0), 1e-9);
    const toggle = h("input", { type: "checkbox", checked: !this.showsAll });
    toggle.addEventListener("change", () => {
      this.showsAll = !toggle.checked;
      this.drawList();
    });
    let stage = "";
    const rows = passes.flatMap((pass): HTMLElement[] => {
      const heads = pass.stage === stage ? [] : [h("div", { class: "stage", role: "presentation" }, pass.stage)];
      stage = pass.stage;
      return [...heads, this.makeRow(pass, longest)];
    });
    const hide = h("label", { title: `${count(idle, "pass", "passes")} changed nothing` }, toggle, "hide unchanged");
    const scrolled = this.list.scrollTop;
    this.list.classList.toggle(
      "is-timed",
      passes.some(({ seconds }) => seconds !== null),
    );
    replaceChildren(this.hide, hide);
    replaceChildren(this.list, ...rows);
    this.list.scrollTop = scrolled;
    const selectedRow = this.list.querySelector<HTMLElement>('[aria-selected="true"]');
    if (selectedRow !== null) {
      const low = selectedRow.offsetTop - this.list.offsetTop;
      if (low < this.list.scrollTop + 24) this.list.scrollTop = low - 24;
      else if (low + selectedRow.offsetHeight > this.list.scrollTop + this.list.clientHeight)
        this.list.scrollTop = low + selectedRow.offsetHeight - this.list.clientHeight;
    }
  }

  private makeRow(passData: PassData, longest: number): HTMLElement {
    const { number, name, argument, change, seconds, changed, remarks } = passData;
    const isChosen = number === this.chosen;
    const time = seconds === null ? "" : duration(seconds * 1e6);
    const bar =
      seconds === null
        ? null
        : h("span", { class: "meter" }, h("span", { style: `width:${(100 * seconds) / longest}%` }));
    const says = [
      `${name}${argument === "" ? "" : ` (${argument})`}: ${change}`,
      time && `${time} of CPU time`,
      ...remarks.map(({ text }) => text),
    ];
    return h(
      "div",
      {
        class: `pass${changed ? "" : " dim"}`,
        role: "option",
        "aria-selected": String(isChosen),
        title: says.filter(Boolean).join("\n"),
        "data-pass": number,
        onclick: () => this.choose(number),
      },
      h("span", { class: "num" }, String(number)),
      h("span", { class: "name" }, name),
      remarks.length > 0
        ? h("span", { class: "said", title: remarks.map(({ text }) => text).join("\n") }, String(remarks.length))
        : null,
      h("span", { class: "change" }, change),
      bar,
      h("span", { class: "took" }, time),
    );
  }

  /** Goes to a line of the text after a pass, and selects it. */
  private goTo({ text, line }: TextPosition): void {
    this.other = null;
    this.line = { text, line };
    this.choose(text);
    this.store.select(this.texts[text][line].nodes);
    this.diff.caret("after", line, true);
  }

  /** Shows the history of the selected line instead of the text. */
  private showHistory(): void {
    const { data, line: place, texts } = this;
    if (place === null) return;
    const rows = findLineHistory({ stage_texts: linkTexts(data!, texts) }, place).map((position) => {
      const { name, stage } = data!.passes[position.text];
      return h(
        "button",
        { type: "button", class: "event of-line", onclick: () => this.goTo(position) },
        h("span", { class: "faint" }, `${stage}, line ${position.line + 1}`),
        h("b", {}, name),
        h("code", {}, texts[position.text][position.line].text.trim()),
      );
    });
    const words = `${count(rows.length - 1, "earlier line")} led to line ${place.line + 1} after ${data!.passes[place.text].name}:`;
    this.diff.element.classList.add("is-one");
    replaceChildren(this.diff.element, h("div", { class: "history" }, h("p", { class: "note" }, words), ...rows));
    this.diff.element.querySelector<HTMLElement>(".of-line")?.focus({ preventScroll: true });
  }

  private choose(number: number): void {
    this.chosen = number;
    this.drawList();
    this.drawText();
  }

  private walk(event: KeyboardEvent): void {
    const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (step === 0 || this.data === null) return;
    event.preventDefault();
    event.stopPropagation();
    const passes = this.listShown();
    const next = passes[passes.findIndex(({ number }) => number === this.chosen) + step];
    if (next !== undefined) this.choose(next.number);
  }

  // *** the text ***

  private drawText(): void {
    const { data, texts, chosen } = this;
    const pass = data!.passes[chosen];
    const language = LANGUAGE[pass.stage];
    if (this.other !== null) return this.drawComparison(pass, language);
    const before = pass.begins || chosen === 0 ? null : texts[chosen - 1];
    this.drawBar();
    this.diff.show({ before, after: addRemarks(texts[chosen], chosen === 0 ? data!.passes : [pass]), language });
    this.diff.find((line) => this.finder.hits(line));
    const loose = pass.remarks.filter(({ uop }) => uop === null).map(({ text }) => text);
    const spilled = pass.name === data!.spilled_by ? describeSpills(data!.spills) : [];
    if (loose.length + spilled.length > 0)
      this.diff.element.prepend(
        h(
          "div",
          { class: "llvm-remarks" },
          ...[...loose, ...spilled].map((text) => h("p", { class: "note", title: text }, text)),
        ),
      );
  }

  /** Draws the header of a pass's text. */
  private drawBar(): void {
    const pass = this.data!.passes[this.chosen];
    const isFirst = pass.begins || this.chosen === 0;
    const wholeButton = button(
      "whole text",
      "Show the equal lines, too",
      () => {
        this.isWhole = !this.isWhole;
        this.diff.whole(this.isWhole);
        wholeButton.setAttribute("aria-pressed", String(this.isWhole));
      },
      "quiet",
    );
    wholeButton.setAttribute("aria-pressed", String(this.isWhole));
    const says = isFirst ? `${pass.stage}, whole` : `${pass.stage}: before | after`;
    const hasFocus = this.finder.input.matches(":focus");
    const { line } = this;
    replaceChildren(
      this.bar,
      h("b", {}, pass.name),
      h("span", { class: "faint" }, `${says} · ${pass.change}`),
      h("span", { class: "space" }),
      this.finder.status,
      this.finder.input,
      line === null
        ? null
        : button(
            `history of line ${line.line + 1}`,
            "The lines that led to the chosen line",
            () => this.showHistory(),
            "quiet",
          ),
      this.makeOffButton(pass),
      isFirst ? null : wholeButton,
    );
    if (hasFocus) this.finder.input.focus();
  }

  /** Returns a button that compiles the kernel without a pass; null without Python, or for a required pass. */
  private makeOffButton({ argument }: PassData): HTMLElement | null {
    if (argument === "" || this.store.sendRequest === null) return null;
    const without = [...this.pipeline.without, argument];
    return button("skip", `Compile without ${argument}`, () => this.ask({ without }), "quiet");
  }

  /** Draws the final texts of the two pipelines in each language. */
  private drawComparison(pass: PassData, language: string): void {
    const { level, found, texts } = this.other!;
    const ends = ["IR", "machine IR", "assembly"];
    const tabs = ends.map((stage) =>
      tab(stage, stage === "assembly" ? "assembly" : `${stage}, at the end`, stage === pass.stage, () => {
        const last = this.data!.passes.findLast((candidate) => candidate.stage === stage);
        if (last !== undefined) this.choose(last.number);
      }),
    );
    const endOf = (data: PassesData): number => data.passes.findLastIndex(({ stage }) => stage === pass.stage);
    const left = this.texts[endOf(this.data!)] ?? [];
    const right = texts[endOf(found)] ?? [];
    replaceChildren(
      this.bar,
      tabList("The texts that are compared", ...tabs),
      h(
        "span",
        { class: "faint" },
        `left: ${nameOf(this.pipeline.level)}, ${summaryOf(this.data!)} · right: ${nameOf(level)}, ${summaryOf(found)}`,
      ),
    );
    this.diff.show({ before: left, after: right, language });
  }
}

function nameOf(level: string): string {
  return level === "" ? OWN : `-${level}`;
}

/**
 * Returns the spilled values of the UOps with most of them; a UOp has several if its vector takes several registers.
 */
function describeSpills(spills: Spill[]): string[] {
  if (spills.length === 0) return [];
  const ofUop = new Map<string, Spill[]>();
  for (const spill of spills) ofUop.set(spill.subject, [...(ofUop.get(spill.subject) ?? []), spill]);
  const most = [...ofUop].sort(([, a], [, b]) => countAccesses(b) - countAccesses(a)).slice(0, MOST_SPILLED);
  const more = ofUop.size > most.length ? `; the ${most.length} UOps of ${ofUop.size} that use the stack most` : "";
  return [
    `${count(spills.length, "value")} without a register, stored on the stack${more}:`,
    ...most.map(([subject, values]) => {
      const bytes = values.reduce((sum, value) => sum + value.bytes, 0);
      const how = `${count(values.length, "value")}, ${bytes} bytes${rangeOf(values[0])}, ${countAccesses(values)} accesses`;
      return `${how}: ${subject || "of no single UOp"}`;
    }),
  ];
}

function countAccesses(values: Spill[]): number {
  return values.reduce((sum, { stores, loads }) => sum + stores + loads, 0);
}

/** Returns the live range of a spilled value as text; pages of earlier versions have none. */
function rangeOf({ blocks = [] }: Partial<Spill>): string {
  if (blocks.length === 0) return "";
  return blocks.length === 1 ? ` in ${blocks[0]}` : ` from ${blocks[0]} to ${blocks.at(-1)}`;
}

function summaryOf({ cpu, seconds, instructions, spills }: PassesData): string {
  const took = seconds > 0 ? ` · passes of the IR ${duration(seconds * 1e6)}` : "";
  const stack = spills.length > 0 ? `, ${count(spills.length, "value")} spilled` : "";
  return `${cpu} · ${count(instructions, "instruction")}${stack}${took}`;
}

/** Returns the text with LLVM's remarks, each at the first line of its UOp. */
function addRemarks(text: readonly PassLine[], passes: readonly PassData[]): DiffLine[] {
  const remarksOfLine = new Map<number, string[]>();
  for (const { remarks } of passes)
    for (const { uop, text: words } of remarks)
      if (uop !== null) remarksOfLine.set(uop, [...(remarksOfLine.get(uop) ?? []), words]);
  return text.map((line) => {
    const remarks = line.uop === null ? undefined : remarksOfLine.get(line.uop);
    if (remarks === undefined) return line;
    remarksOfLine.delete(line.uop!);
    return { ...line, remarks: [...new Set(remarks)] };
  });
}
