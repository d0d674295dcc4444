// The pipeline strip: where you are, what each stage holds, what it took; a click goes there.

import { h, replaceChildren } from "../dom";
import { count, duration, kernelNameParts, languageName, spread } from "../format";
import type { Stage } from "../model";
import type { Change, Cursor, Place, Store, View } from "../store";

interface Part {
  place: Place;
  title: string;
  text: (string | Element)[];
  us: number;
}

const KERNEL_STAGES = /schedul|fus|decid/i;
const UOP_STAGES = /lineari/i;
const CODE_STAGES = /render|compil|list|assembl|link/i;
const RUN_STAGES = /^(run|execute|measure)/i;

export class PipelineView implements View {
  readonly element = h("nav", { class: "pipeline", "aria-label": "Pipeline" });
  private readonly times: Record<Place, number>;

  constructor(private readonly store: Store) {
    this.times = this.sumTimes();
    this.draw();
  }

  update(change: Change): void {
    if (change.cursor) this.draw();
  }

  private sumTimes(): Record<Place, number> {
    const times: Record<Place, number> = { python: 0, lazy: 0, kernels: 0, passes: 0, uops: 0, code: 0, run: 0 };
    const { index } = this.store;
    for (const stage of index.trace.stages) {
      const inside = index.children.get(stage.id) ?? [];
      const own = stage.elapsed_us - inside.reduce((sum, child) => sum + child.elapsed_us, 0);
      // listings in other languages are made for the reader: no program waits for them
      if (stage.name !== "list") times[this.placeOf(stage)] += Math.max(0, own);
    }
    times.run = index.trace.kernels.reduce((sum, kernel) => sum + (index.runOf(kernel.id)?.median_us ?? 0), 0);
    return times;
  }

  private placeOf(stage: Stage): Place {
    if (RUN_STAGES.test(stage.name)) return "run";
    if (UOP_STAGES.test(stage.name)) return "uops";
    if (stage.kernel === null || KERNEL_STAGES.test(stage.name)) return "kernels";
    if (CODE_STAGES.test(stage.name) && stage.steps.length === 0 && !this.hasChildren(stage)) return "code";
    return "passes";
  }

  private hasChildren(stage: Stage): boolean {
    return (this.store.index.children.get(stage.id) ?? []).length > 0;
  }

  private parts(): Part[] {
    const { index, cursor } = this.store;
    const { trace } = index;
    const lazy = trace.nodes.filter((node) => node.kind === "lazybuffer");
    const views = lazy.filter((node) => node.group === "movement").length;
    const ofKernel = (stage: Stage): boolean => stage.kernel === cursor.kernel;
    const passes = trace.stages.filter((stage) => ofKernel(stage) && this.isPass(stage));
    const firings = passes.reduce((sum, stage) => sum + index.firings(stage), 0);
    const idle = passes.filter((stage) => index.changed(stage) === false).length;
    const programs = index.programsOf(cursor.kernel);
    const uops = programs.find((program) => program.language === "uops");
    const code = programs.filter((program) => program.language !== "uops");
    const assembly = code.find((program) => program.language === "asm");
    const lines = code.reduce((sum, program) => sum + (program === assembly ? 0 : program.lines.length), 0);
    const kernel = cursor.kernel === null ? undefined : trace.kernels[cursor.kernel];
    const run = cursor.kernel === null ? null : index.runOf(cursor.kernel);
    const python = trace.sources.reduce((sum, source) => sum + source.text.trimEnd().split("\n").length, 0);
    const languages = code.map((program) => languageName(program.language).replace("LLVM optimised", "LLVM IR"));
    const part = (place: Place, title: string, ...text: (string | Element)[]): Part => {
      return { place, title, text, us: this.times[place] };
    };
    return [
      part("python", "Python", count(python, "line")),
      part("lazy", "LazyBuffers", `${count(lazy.length, "node")} · ${count(views, "view")}`),
      part("kernels", "Kernels", `${trace.kernels.length}`, ...(kernel ? [" · ", kernelName(kernel)] : [])),
      part("passes", "Passes", `${passes.length} · ${count(firings, "firing")}${idle > 0 ? ` · ${idle} idle` : ""}`),
      part("uops", "UOps", uops ? `${uops.lines.length} linear` : "not listed"),
      part(
        "code",
        [...new Set(languages)].join(" · ") || "Code",
        programs.length === 0
          ? "not rendered"
          : [count(lines, "line"), assembly ? `${assembly.lines.length} assembly` : ""].filter(Boolean).join(" · "),
      ),
      part("run", "Run", run === null ? "not timed" : `${duration(run.median_us)}${spread(run)}`),
    ];
  }

  private isPass(stage: Stage): boolean {
    return this.placeOf(stage) === "passes" && this.store.index.changed(stage) !== null && !this.hasChildren(stage);
  }

  private draw(): void {
    const longest = Math.max(1, ...Object.values(this.times));
    const focused = this.element.contains(document.activeElement);
    const buttons = this.parts().map(({ place, title, text, us }) => {
      const active = this.store.cursor.place === place;
      const timed = us > 0 ? `${title}: ${duration(us)} in all` : title;
      const attributes = { type: "button", class: "part", title: timed, "data-place": place };
      const bar = h("span", { class: "bar", style: `width:${us > 0 ? Math.max(2, (us / longest) * 100) : 0}%` });
      const time = us > 0 ? h("span", { class: "took" }, duration(us)) : null;
      const head = h("span", { class: "head" }, h("b", {}, title), time);
      return h(
        "button",
        { ...attributes, "aria-current": active ? "step" : null, onclick: () => this.store.go(this.target(place)) },
        head,
        h("span", { class: "what" }, ...text),
        bar,
      );
    });
    replaceChildren(this.element, ...buttons);
    if (focused) this.element.querySelector<HTMLElement>('[aria-current="step"]')?.focus();
  }

  private target(place: Place): Partial<Cursor> {
    const { cursor, index } = this.store;
    const tabs = { ...cursor.tabs };
    const own = index.trace.stages.filter((stage) => stage.kernel === cursor.kernel);
    switch (place) {
      case "python":
        return { place, tabs: { ...tabs, a: "source 0" } };
      case "lazy":
        return { place, graph: "lazy" };
      case "kernels":
        return { place, panel: "kernels" };
      case "passes": {
        const at = own.find((stage) => stage.id === cursor.stage && this.isPass(stage));
        const stage = at ?? own.find((one) => this.isPass(one) && index.changed(one)) ?? null;
        const move = stage !== null && at === undefined ? { stage: stage.id, step: 0 } : {};
        return { place, graph: "uops", panel: "rewrites", ...move };
      }
      case "uops": {
        const last = own.findLast((stage) => stage.after.length > 0 && !this.hasChildren(stage));
        const move = last === undefined ? {} : { stage: last.id, step: index.endOf(last) };
        return { place, graph: "uops", tabs: { ...tabs, a: "uops" }, ...move };
      }
      case "code":
        return { place };
      case "run":
        return { place, panel: "timing" };
    }
  }
}

/** A kernel's name, the numbers in it coloured by the kind of axis they are the size of. */
export function kernelName(kernel: Parameters<typeof kernelNameParts>[0]): HTMLElement {
  const axes = kernel.axes.map(([name, kind, size]) => `${name}: ${kind}, ${size}`).join("\n");
  const parts = kernelNameParts(kernel).map(({ text, kind }) => h("span", { class: kind ? `axis-${kind}` : null }, text));
  return h("span", { class: "kernel-name", title: axes || null }, ...parts);
}
