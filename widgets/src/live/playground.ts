// The playground: the user types a program, the page's Python runs it, and the explorer below shows it. A link contains
// the program but does not run it; the reader does.

import { copyText } from "../clipboard";
import { button, h, replaceChildren } from "../dom";
import type { Handle, MountOptions } from "../explorer";
import type { Trace } from "../model";
import type { RunProgramResult } from "../requests";
import { ProgramEditor } from "./editor";
import type { PageEngine } from "./engine";
import { EXAMPLES } from "./examples";
import { type Shared, fromFragment, toFragment } from "./share_link";

/** The exports of the explorer's own bundle (standalone.ts). */
interface Explorer {
  mount(element: HTMLElement, trace: Trace, options: MountOptions): Handle;
  readTrace(data: Uint8Array): Promise<Trace>;
  handle: Handle | null;
}

export class Playground {
  private readonly editor = new ProgramEditor();
  private readonly says = h("div", { class: "pg-note", role: "status", hidden: true });
  private readonly output = h("pre", {
    class: "pg-output",
    tabindex: 0,
    role: "region",
    "aria-label": "What the program printed",
    hidden: true,
  });
  private readonly place = h("div", { class: "pg-explorer" });
  private readonly runs = button(
    "Run",
    "Run the program, and explore what it computes (Ctrl+Enter)",
    () => void this.run(),
    "pg-run",
  );
  private readonly machine: HTMLSelectElement;
  private handle: Handle | null = null;
  private wanted = "";
  private count = 0; // number of programs that were run

  constructor(
    root: HTMLElement,
    private readonly engine: PageEngine,
    machines: [label: string, machine: string][],
  ) {
    const examples = h(
      "select",
      { "aria-label": "Examples", class: "pg-examples" },
      h("option", { value: "" }, "Examples …"),
      ...EXAMPLES.map(([name], i) => h("option", { value: i }, name)),
    );
    examples.addEventListener("change", () => {
      if (examples.value !== "")
        this.open({ text: EXAMPLES[Number(examples.value)][1], machine: this.machine.value, place: "" });
      examples.value = "";
      this.editor.focus();
    });
    this.machine = h(
      "select",
      {
        "aria-label": "Target machine",
        title: "The target machine of the kernels. This page interprets them",
      },
      ...machines.map(([label, value]) => h("option", { value }, label)),
    );
    const share = button(
      "Share",
      "Copies a link to this program and to your position in the explorer",
      () => void this.share(),
    );
    const bar = h(
      "header",
      { class: "pg-bar" },
      h("h1", {}, "tinyexplore", h("span", {}, " playground")),
      examples,
      this.machine,
      h("span", { class: "pg-space" }),
      engine.badge,
      share,
      this.runs,
    );
    const keys = h(
      "p",
      { class: "pg-keys", id: "pg-keys" },
      h("kbd", {}, "Ctrl"),
      " ",
      h("kbd", {}, "Enter"),
      " runs · ",
      h("kbd", {}, "Tab"),
      " indents, ",
      h("kbd", {}, "Esc"),
      " then ",
      h("kbd", {}, "Tab"),
      " leaves the editor · code before ",
      h("code", {}, "# %%"),
      " runs but is not shown",
    );
    const program = h(
      "section",
      { class: "pg-program", "aria-label": "Program" },
      this.says,
      this.editor.element,
      keys,
      this.output,
    );
    root.append(bar, h("main", { class: "pg-main" }, program, this.place));
    this.editor.onRun = () => void this.run();
    this.editor.onChange = () => (this.wanted = "");
    this.showPrompt();
    void this.begin();
    addEventListener("hashchange", () => void this.begin());
  }

  /** Loads the program of the page's address, else the first example. */
  private async begin(): Promise<void> {
    try {
      const shared = await fromFragment(location.hash);
      if (shared === null) {
        if (this.editor.text === "") this.open({ text: EXAMPLES[0][1], machine: "", place: "" });
        return;
      }
      this.open(shared);
      this.note(
        "The link contained this program. It has not run yet. Read the program, then press Run. It runs in this page only, without a network.",
      );
    } catch (error) {
      this.open({ text: EXAMPLES[0][1], machine: "", place: "" });
      this.note(error instanceof Error ? error.message : String(error), true);
    }
    document.documentElement.dataset.playground = "ready";
  }

  private open({ text, machine, place }: Shared): void {
    this.editor.text = text;
    if ([...this.machine.options].some(({ value }) => value === machine)) this.machine.value = machine;
    this.wanted = place;
    this.note("");
  }

  private async run(): Promise<void> {
    if (this.runs.disabled) return;
    this.runs.disabled = true;
    this.runs.textContent = "Running …";
    this.note("");
    this.editor.mark(null);
    try {
      const { played, trace } = await this.engine.play(this.editor.text, this.machine.value);
      this.print(played);
      if (trace !== undefined) await this.explore(trace);
      else if (played.failed === null) this.note("The program built no tensor, so there is nothing to explore.");
    } catch (error) {
      this.note(error instanceof Error ? error.message : String(error), true);
    } finally {
      this.runs.disabled = false;
      this.runs.textContent = "Run";
      this.count += 1;
      this.place.dataset.runs = String(this.count);
    }
  }

  private print({ output, failed }: RunProgramResult): void {
    this.output.hidden = output === "" && failed === null;
    replaceChildren(
      this.output,
      output,
      failed === null ? null : h("span", { class: "pg-failed", role: "alert" }, failed.text),
    );
    this.editor.mark(failed?.line ?? null);
  }

  private async explore(data: Uint8Array): Promise<void> {
    const explorer = (globalThis as unknown as { tinyexplore: Explorer }).tinyexplore;
    const trace = await explorer.readTrace(data);
    const mode = this.handle?.mode; // the current mode
    this.handle?.destroy();
    this.place.replaceChildren();
    this.handle = explorer.handle = explorer.mount(this.place, trace, {
      engine: this.engine,
      size: data.byteLength,
      height: "100%",
      badge: false,
      mode,
    });
    if (this.wanted !== "") this.handle.open(this.wanted);
    document.documentElement.dataset.tinyexplore = "ready";
  }

  private async share(): Promise<void> {
    const link = this.handle === null ? this.wanted : this.handle.link;
    const fragment = await toFragment({ text: this.editor.text, machine: this.machine.value, place: link });
    history.replaceState(null, "", fragment);
    const copied = await copyText(location.href);
    this.note(
      copied
        ? "The link is copied. It contains the program, the machine, and your position in the explorer. Opening the link does not run the program."
        : "The link is in the address bar.",
    );
  }

  private note(text: string, isError = false): void {
    this.says.textContent = text;
    this.says.hidden = text === "";
    this.says.classList.toggle("wrong", isError);
  }

  private showPrompt(): void {
    replaceChildren(
      this.place,
      h(
        "div",
        { class: "pg-empty" },
        h(
          "p",
          {},
          "Press Run to explore the program in this page, from Python to machine instructions. Nothing is installed. The page uses no server.",
        ),
      ),
    );
  }
}
