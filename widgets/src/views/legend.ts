// The graph's legend: the colors and shapes on the canvas, each drawn as on the canvas.

import { button, h, replaceChildren, s } from "../dom";
import { findMeaning } from "../term_meanings";
import { readSetting, saveSetting } from "../saved_settings";

const FOLDED = "legend"; // key in the browser's storage: "folded" or "open", as the user chose
const LOW = 300; // pixels; a canvas up to this height has no room for a legend,
const ENOUGH = 380; // one from this height on has

/** A sign of the drawing, and its meaning. */
export interface LegendItem {
  /** Elements in a field of 26 × 14 pixels. */
  picture: SVGElement[];
  says: string;
  /** Details for the tooltip. */
  title?: string;
}

const ROLES: Record<string, string> = {
  buffer: "existing buffer",
  memory: "load or store",
  reduce: "reduction",
  loop: "loop",
  alu: "arithmetic",
  movement: "view",
  const: "constant",
  control: "structure",
};

const DECISIONS: Record<string, [string, string]> = {
  realize: ["gets memory", "The scheduler gives the result a buffer"],
  keep: ["row buffer", "Computed once per row into scratch memory"],
  duplicate: ["computed again", "The kernel of each reader computes it"],
};

const EDGE_SIGNS: Record<string, [string, string]> = {
  fused: ["fused", "Computed in the kernel that reads it, without memory traffic"],
  again: ["computed in several kernels", "Each kernel that reads it computes it again"],
  cut: ["cut: stored in memory", "One kernel stores it, another loads it"],
};

/** Returns a small box with these classes. */
function makeBoxSign(classes: string, says: string, title = ""): LegendItem {
  const rect = s("rect", { x: 2, y: 2, width: 22, height: 10, rx: 3 });
  const behind = classes.includes("region")
    ? [s("rect", { class: "box-shadow", x: 4.5, y: 0.8, width: 21, height: 9, rx: 3 })]
    : [];
  return { picture: [s("g", { class: `box ${classes}` }, ...behind, rect)], says, title };
}

function makeLineSign(classes: string, says: string, title: string, mark: SVGElement[] = []): LegendItem {
  return { picture: [s("path", { class: `edge ${classes}`, d: "M1 7H25" }), ...mark], says, title };
}

/** Returns the signs of these boxes' classes. `isByKernel`: whether colors are kernels. */
export function listBoxSigns(classes: readonly string[], isByKernel: boolean): LegendItem[] {
  const words = new Set(classes.flatMap((text) => text.split(" ")));
  const signs: LegendItem[] = [];
  if (isByKernel) {
    const kernel = classes.find((text) => text.includes("by-kernel"));
    const kernelClasses = kernel?.split(" ").filter((word) => word === "by-kernel" || word.startsWith("k-"));
    if (kernelClasses !== undefined)
      signs.push(
        makeBoxSign(kernelClasses.join(" "), "color: its kernel", "Nodes of one color are computed by one kernel"),
      );
    if (words.has("no-kernel")) signs.push(makeBoxSign("no-kernel", "existing: already in memory"));
  } else {
    for (const [role, says] of Object.entries(ROLES))
      if (words.has(`g-${role}`)) signs.push(makeBoxSign(`g-${role}`, says, findMeaning("role", role)));
  }
  for (const [decision, [says, title]] of Object.entries(DECISIONS))
    if (words.has(`d-${decision}`)) signs.push(makeBoxSign(`d-${decision}`, says, title));
  if (words.has("region"))
    signs.push(makeBoxSign("region", "several nodes", "A double click, or E, draws them one by one"));
  if (words.has("new")) signs.push(makeBoxSign("new", "changed by this step"));
  return signs;
}

/** Returns the signs of edges: through views, and the scheduler's decisions. */
export function listEdgeSigns(hasViews: boolean, hasLong: boolean, marks: ReadonlySet<string>): LegendItem[] {
  const signs: LegendItem[] = [];
  if (hasViews)
    signs.push(makeLineSign("through-views", "through views", "Views between the two boxes: other indices, no copy"));
  if (hasLong) signs.push(makeLineSign("long", "long edge", "Drawn pale, because it crosses other boxes"));
  for (const [mark, [says, title]] of Object.entries(EDGE_SIGNS)) {
    if (!marks.has(mark)) continue;
    const shape =
      mark === "cut"
        ? s("path", { d: "M-7-3H7M-7 3H7", transform: "rotate(90)" })
        : s("circle", { r: mark === "fused" ? 2.6 : 3.6 });
    signs.push(
      makeLineSign("", says, title, [s("g", { class: `edge-decision ${mark}`, transform: "translate(13 7)" }, shape)]),
    );
  }
  return signs;
}

/** Returns the sign of a frame around a product. */
export function makeProductSign(): LegendItem {
  const rect = s("rect", { x: 2, y: 1, width: 22, height: 12, rx: 3 });
  return {
    picture: [s("g", { class: "frame product" }, rect)],
    says: "a product: multiply, then sum",
    title:
      "A matrix product or a convolution: two operands repeated to one shape, multiplied, summed. A click on the heading folds the box",
  };
}

export class Legend {
  readonly element = h("div", { class: "legend", role: "group", "aria-label": "Legend: colors and shapes" });
  private signs: readonly LegendItem[] = [];
  private keys: readonly HTMLElement[] = [];
  private isFolded = readSetting(FOLDED) === "folded";
  private isChosen = readSetting(FOLDED) !== null;

  /** `keys`: further entries. */
  write(signs: readonly LegendItem[], keys: readonly HTMLElement[]): void {
    [this.signs, this.keys] = [signs, keys];
    this.draw();
  }

  /** Folds the legend if the canvas is low, unless the user chose. `height`: of the canvas. */
  fitCanvas(height: number): void {
    const next = height < LOW || (this.isFolded && height < ENOUGH);
    if (this.isChosen || next === this.isFolded) return;
    this.isFolded = next;
    this.draw();
  }

  private draw(): void {
    const { signs, keys, isFolded } = this;
    this.element.hidden = signs.length + keys.length === 0;
    this.element.classList.toggle("is-folded", isFolded);
    const fold = button(
      `${isFolded ? "▸" : "▾"} Legend`,
      "Show or hide the legend",
      () => {
        this.isFolded = !isFolded;
        this.isChosen = true;
        saveSetting(FOLDED, this.isFolded ? "folded" : "open");
        this.draw();
      },
      "quiet fold",
    );
    fold.setAttribute("aria-expanded", String(!isFolded));
    const entry = ({ picture, says, title }: LegendItem): HTMLElement =>
      h(
        "span",
        { class: "sign", title },
        s("svg", { width: 26, height: 14, viewBox: "0 0 26 14", "aria-hidden": "true" }, ...picture),
        says,
      );
    replaceChildren(this.element, fold, ...(isFolded ? [] : [...signs.map(entry), ...keys]));
  }
}
