// The kernel debugger: the linear program with its current line, counters and values, and the accessed tensors. It
// requests every step from Python, or walks recorded steps. Its shortcut keys work while the panel has the focus.

import { makeRerunButton } from "../rerun_button";
import { groupDigits } from "../format";
import { button, h, replaceChildren } from "../dom";
import { parameterName } from "../kernel_labels";
import { type Action, RecordedDebugger } from "../recorded_debugger";
import type { DebugRequest, DebuggerState, TensorData } from "../requests";
import type { Change, Store, View } from "../store";

/** Steps the debugger in Python, or through the recorded steps. */
type Step = (request: DebugRequest) => Promise<DebuggerState>;

export class DebuggerView implements View {
  readonly element = h("div", { class: "debugger scroll", tabindex: 0, role: "region", "aria-label": "Debugger" });
  private kernel: number | null = null;
  private state: DebuggerState | null = null;
  private condition = "nan";
  private lane: number | null = null;
  private run: Step | null = null;
  private busy = false;
  private usesGeneratedInputs = false; // whether generated inputs replace missing ones
  private leavesField = false;

  constructor(private readonly store: Store) {
    this.element.addEventListener("keydown", (event) => this.onKey(event));
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor) this.draw();
  }

  private draw(): void {
    const { cursor, sendRequest } = this.store;
    const kernel = cursor.kernel ?? 0;
    if (cursor.panel !== "debugger" || kernel === this.kernel) return;
    this.run = sendRequest ?? this.replayRecording(kernel);
    if (this.run === null) {
      this.showNote(
        "This page has no recorded steps. To store them, save the page with ",
        `view.to_html(path, iterations=2000)`,
      );
      return;
    }
    this.kernel = kernel;
    this.lane = null;
    this.usesGeneratedInputs = false;
    void this.request(this.run, { do: "look" });
  }

  /** Returns a stepper over the recorded steps of the kernel. */
  private replayRecording(kernel: number): Step | null {
    const recording = this.store.index.trace.recordings.find((candidate) => candidate.kernel === kernel);
    if (recording === undefined) return null;
    const run = new RecordedDebugger(recording);
    return async (request) => run.respond(request);
  }

  private showNote(text: string, code: string, ...more: HTMLElement[]): void {
    replaceChildren(this.element, h("p", { class: "note" }, text, h("code", {}, code)), ...more);
  }

  private runAction(action: Action): void {
    if (this.run !== null && !this.busy) void this.request(this.run, action);
  }

  /** Runs the action of a field. Afterwards the panel takes the focus, so that the arrow keys step. */
  private runFromField(action: Action): void {
    this.leavesField = true;
    this.runAction(action);
  }

  private async request(ask: Step, action: Action): Promise<void> {
    const { kernel } = this;
    this.busy = true;
    this.element.setAttribute("aria-busy", "true");
    try {
      const state = await ask({
        ask: "debug",
        kernel: kernel ?? 0,
        ...(this.lane === null ? {} : { lane: this.lane }),
        ...action,
      });
      if (kernel !== this.kernel) return;
      this.state = state;
      this.show(state);
    } catch (error) {
      if (kernel === this.kernel) this.showRefusal(error instanceof Error ? error.message : String(error));
    } finally {
      this.busy = false;
      this.leavesField = false;
      this.element.removeAttribute("aria-busy");
    }
  }

  private showRefusal(message: string): void {
    const alert = h("p", { class: "note", role: "alert" }, message);
    if (this.state !== null && this.element.querySelector(".steps")) {
      this.element.querySelector("[role=alert]")?.remove();
      this.element.querySelector(".steps")!.after(alert);
      return;
    }
    if (this.usesGeneratedInputs || this.run === null) {
      replaceChildren(this.element, alert);
      return;
    }
    this.usesGeneratedInputs = true; // 0, 1, 2 … in every buffer show which element goes where; the response notes this
    void this.request(this.run, { do: "generated" });
  }

  /** Returns the remark on the inputs; if they are generated, with a button that captures the real ones. */
  private noteOf(text: string): HTMLElement {
    const says = "Calls the captured function again, and stores the inputs of its kernels";
    const keep = this.usesGeneratedInputs
      ? makeRerunButton(this.store, "Keep the inputs and run again", says, { keep_inputs: true })
      : null;
    return h("p", { class: "note faint" }, keep === null ? text : `${text.split(/(?<=\.) /)[0]} `, keep);
  }

  private onKey(event: KeyboardEvent): void {
    if (
      event.target instanceof HTMLInputElement ||
      event.target instanceof HTMLSelectElement ||
      event.altKey ||
      event.ctrlKey ||
      event.metaKey ||
      this.state === null
    )
      return;
    const actions: Record<string, Action> = {
      ArrowRight: { do: "step" },
      ArrowLeft: { do: "back" },
      ArrowDown: { do: "step", count: 10 },
      ArrowUp: { do: "back", count: 10 },
      Home: { do: "restart" },
      End: { do: "finish" },
      Enter: { do: "run until", condition: this.condition },
    };
    const action = actions[event.key];
    const presses = event.key === "Enter" && event.target instanceof HTMLButtonElement;
    if (action === undefined || presses) return;
    event.preventDefault();
    event.stopPropagation();
    this.runAction(action);
  }

  private show(state: DebuggerState): void {
    const hadFocus = this.element.contains(document.activeElement);
    const focused = hadFocus && !this.leavesField ? document.activeElement?.getAttribute("data-focus") : null;
    const scrolled = this.element.querySelector(".program")?.scrollTop ?? 0;
    replaceChildren(
      this.element,
      this.makeControls(state),
      state.note === "" ? null : this.noteOf(state.note),
      h(
        "div",
        { class: "debugger-body" },
        this.makeProgram(state),
        h(
          "div",
          { class: "tensors", tabindex: 0, role: "region", "aria-label": "Tensors" },
          this.makeAccessed(state),
          ...sortAccessedFirst(state.tensors).map((tensor) => makeGrid(tensor, this.nameBuffer(tensor.name))),
        ),
      ),
    );
    const program = this.element.querySelector<HTMLElement>(".program")!;
    program.scrollTop = scrolled;
    const line = program.querySelector<HTMLElement>("[aria-current]");
    if (line !== null) keepVisible(program, line);
    if (focused) this.element.querySelector<HTMLElement>(`[data-focus="${focused}"]`)?.focus();
    if (hadFocus && !this.element.contains(document.activeElement)) this.element.focus({ preventScroll: true });
  }

  private makeControls(state: DebuggerState): HTMLElement {
    const control = (text: string, title: string, action: Action): HTMLElement => {
      const element = button(text, title, () => this.runAction(action));
      element.dataset.focus = title;
      return element;
    };
    const until = h("input", {
      type: "text",
      value: this.condition,
      "aria-label": "Condition to run until",
      "data-focus": "condition",
      title: "nan, inf, data1[37], store data0[3], %12 > 100 and g0 == 3",
      oninput: (event: Event) => (this.condition = (event.target as HTMLInputElement).value),
      onkeydown: (event: KeyboardEvent) => {
        event.stopPropagation();
        if (event.key === "Enter") this.runFromField({ do: "run until", condition: this.condition });
      },
    });
    return h(
      "div",
      { class: "steps" },
      control("⇤", "To the start (Home)", { do: "restart" }),
      control("◀", "One step back (←)", { do: "back" }),
      control("▶", "One step forward (→)", { do: "step" }),
      control("⇥", "To the end (End)", { do: "finish" }),
      h("label", { class: "until" }, "until ", until),
      control("Run", "Run until the condition holds (Enter)", {
        do: "run until",
        get condition() {
          return until.value;
        },
      }),
      h("span", { class: "where", role: "status" }, `step ${groupDigits(state.position)} · ${state.reason}`),
      this.makeLaneChoice(state),
      ...this.makeCounters(state),
    );
  }

  /** Returns the control for the visible lane of vectors. */
  private makeLaneChoice({ lanes }: DebuggerState): HTMLElement | null {
    if (lanes < 2) return null;
    const names = ["all", ...Array.from({ length: lanes }, (_, i) => String(i))];
    const choose = (event: Event): void => {
      const { value } = event.target as HTMLSelectElement;
      this.lane = value === "all" ? null : Number(value);
      this.runFromField({ do: "look" });
    };
    const chosen = this.lane === null ? "all" : String(this.lane);
    const options = names.map((name) => h("option", { value: name, selected: name === chosen }, name));
    return h(
      "label",
      { class: "which-lane" },
      "lane ",
      h("select", { "aria-label": "Vector lane to show", "data-focus": "lane", onchange: choose }, ...options),
    );
  }

  /**
   * Returns the counters of the loops; a number typed into one goes to that iteration, with the outer counters
   * unchanged.
   */
  private makeCounters({ nest, loops }: DebuggerState): HTMLElement[] {
    const open = new Map(loops);
    const fields = new Map<string, HTMLInputElement>();
    return nest.map(([name, around]) => {
      const jump = (): void => {
        const counterValues = [...around, name]
          .map((loop) => [loop, fields.get(loop)!.value])
          .filter(([, value]) => value !== "");
        if (counterValues.length > 0)
          this.runFromField({
            do: "iteration",
            counters: Object.fromEntries(counterValues.map(([loop, value]) => [loop, Number(value)])),
          });
      };
      const field = h("input", {
        type: "number",
        min: 0,
        value: open.get(name) ?? "",
        placeholder: "–",
        "aria-label": `Iteration of ${name}`,
        "data-focus": `counter ${name}`,
        title: `Jump to an iteration of ${name} (Enter)`,
      });
      field.addEventListener("keydown", (event) => {
        event.stopPropagation();
        if (event.key === "Enter") jump();
      });
      fields.set(name, field);
      return h("label", { class: open.has(name) ? "counter" : "counter out" }, h("b", {}, name), " = ", field);
    });
  }

  private makeProgram(state: DebuggerState): HTMLElement {
    const values = new Map(state.values);
    const lines = state.listing.map((text, lineNumber) =>
      h(
        "button",
        {
          type: "button",
          class: "uop",
          "aria-current": lineNumber === state.place ? "step" : null,
          title: "Run on to this line",
          onclick: () => this.runAction({ do: "run to", line: lineNumber }),
        },
        h("span", { class: "text" }, text),
        this.nameParameter(text),
        values.has(lineNumber) ? h("span", { class: "value" }, values.get(lineNumber)!) : null,
      ),
    );
    return h("div", { class: "program", role: "group", "aria-label": "Linear program" }, ...lines);
  }

  /** Returns the name of a buffer in the user's Python, beside the program's name. */
  private nameBuffer(buffer: string): string {
    return parameterName(this.store.index.trace, this.kernel ?? 0, buffer);
  }

  /** Returns the name of a parameter's memory, for the line that declares it. */
  private nameParameter(line: string): HTMLElement | null {
    const [, buffer] = /DEFINE_GLOBAL (\w+)/.exec(line) ?? [];
    const name = buffer === undefined ? "" : this.nameBuffer(buffer);
    return name === (buffer ?? "") ? null : h("span", { class: "faint" }, name.slice(0, -` · ${buffer}`.length));
  }

  private makeAccessed(state: DebuggerState): HTMLElement | null {
    if (state.accesses.length === 0) return h("p", { class: "note faint" }, "This step accesses no memory.");
    const [buffer, stored, index, value] = state.accesses[0];
    const places = index.filter((place) => place !== null);
    const where =
      places.length === 0
        ? "no access: no lane is valid"
        : places.length === 1
          ? `${this.nameBuffer(buffer)}[${places[0]}]`
          : `${this.nameBuffer(buffer)}[${places[0]} … ${places.at(-1)}]`;
    return h("p", { class: "note" }, h("b", {}, where), stored ? ` ← ${value}` : ` → ${value}`);
  }
}

function sortAccessedFirst(tensors: TensorData[]): TensorData[] {
  return [...tensors].sort((a, b) => Number(b.lit.length > 0) - Number(a.lit.length > 0));
}

function makeGrid({ name, size, width, first, cells, lit, recent, stored }: TensorData, called: string): HTMLElement {
  const now = new Set(lit);
  const before = new Set(recent);
  const boxes = cells.map((text, i) => {
    const elementNumber = first + i;
    const kind = now.has(elementNumber) ? (stored ? "stored" : "loaded") : before.has(elementNumber) ? "recent" : "";
    return h("span", { class: `element ${kind}`, title: `${name}[${elementNumber}]` }, text);
  });
  const rangeText =
    cells.length < size ? ` · ${first} … ${first + cells.length - 1} of ${groupDigits(size)}` : ` · ${size}`;
  return h(
    "figure",
    { class: "tensor" },
    h("figcaption", {}, h("b", {}, called), h("span", { class: "faint" }, rangeText)),
    h(
      "div",
      {
        class: "elements",
        style: `--width:${width}`,
        role: "img",
        "aria-label": `${called}${rangeText}; accessed: ${lit.join(", ") || "nothing"}`,
      },
      ...boxes,
    ),
  );
}

function keepVisible(program: HTMLElement, line: HTMLElement): void {
  const top = line.getBoundingClientRect().top - program.getBoundingClientRect().top;
  if (top < 0 || top + line.offsetHeight > program.clientHeight) program.scrollTop += top - program.clientHeight / 2;
}
