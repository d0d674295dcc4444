// The legal opts as buttons, by axis, and the illegal ones with their legality errors.

import { button, h } from "../dom";
import type { KernelVariant, OptEffect, OptOffer } from "../model";
import { type WhatIf, optText } from "../what_if";

// their amount is another axis; MERGE is COLLAPSE in older traces
const NAMES_AXIS = new Set(["SWAP", "COLLAPSE", "MERGE"]);

/** The buttons, and the law of the hovered opt. */
export class OptButtons {
  readonly element = h("div", { class: "tuner-opts scroll", tabindex: 0, role: "group", "aria-label": "Opts" });
  /** The axis of the loop whose opts alone are shown; null for all. */
  chosen: number | null = null;
  private readonly law = h("div", { class: "tuner-law", "aria-live": "polite" });
  private unfolded = false;

  constructor(
    private readonly whatIf: WhatIf,
    private readonly redraw: () => void,
  ) {}

  /** Shows the opts of one axis, or of all (null), from the next drawing on. */
  choose(axis: number | null): void {
    this.chosen = axis;
    this.element.scrollTop = 0;
  }

  draw(kernel: number, variant: KernelVariant): void {
    if (this.chosen !== null && !variant.nest.some(({ axis }) => axis === this.chosen)) this.chosen = null;
    const { chosen } = this;
    const axes = [...new Set(variant.offers.map(({ axis }) => axis))].filter(
      (axis) => chosen === null || axis === chosen,
    );
    const rows = axes.map((axis) => this.makeAxisRow(kernel, variant, axis)).filter((row) => row !== null);
    const illegal = variant.offers.filter(({ legality_error }) => legality_error !== "");
    const refused = illegal.map((offer) =>
      h("li", {}, h("b", {}, namesOf(offer, variant)), ` ${offer.legality_error}`),
    );
    const folded = h(
      "details",
      { class: "tuner-illegal", open: this.unfolded },
      h("summary", {}, `${illegal.length} illegal now, with reasons`),
      h("ul", {}, ...refused),
    );
    folded.addEventListener("toggle", () => (this.unfolded = folded.open));
    const focus = this.element.querySelector<HTMLElement>(":focus")?.dataset.opt;
    const name = chosen === null ? "" : nameAxis(variant, chosen);
    const none = chosen === null ? "No opt is legal any more." : `No opt of ${name} is legal.`;
    const all = button("all loops", "Show the opts of all loops", () => {
      this.choose(null);
      this.redraw();
    });
    const head = h(
      "div",
      { class: "tuner-opts-head" },
      h("span", { class: "faint" }, chosen === null ? "legal opts: press one to try it" : `legal opts of ${name}`),
      chosen === null ? null : all,
    );
    this.element.replaceChildren(
      head,
      ...(rows.length === 0 ? [h("p", { class: "note" }, none)] : rows),
      this.law,
      folded,
    );
    if (focus !== undefined) this.element.querySelector<HTMLElement>(`[data-opt="${CSS.escape(focus)}"]`)?.focus();
    this.explain(null);
  }

  /** Highlights the row of an axis. */
  highlightAxis(axis: number | null): void {
    for (const row of this.element.querySelectorAll<HTMLElement>("[data-axis]"))
      row.classList.toggle("lit", row.dataset.axis === String(axis));
  }

  private makeAxisRow(kernel: number, variant: KernelVariant, axis: number): HTMLElement | null {
    const offers = variant.offers.filter((offer) => offer.axis === axis && offer.legality_error === "");
    if (offers.length === 0) return null;
    const kinds = [...new Set(offers.map(({ op }) => op))];
    const line = variant.nest.find((loop) => loop.axis === axis);
    const name = line === undefined ? `axis ${axis}` : (/^for (\w+)/.exec(line.text)?.[1] ?? `axis ${axis}`);
    const groups = kinds.map((op) => {
      const amounts = offers
        .filter((offer) => offer.op === op)
        .flatMap((offer) => offer.amounts.map((amount) => ({ amount, offer })));
      amounts.sort((a, b) => a.amount - b.amount);
      return h(
        "span",
        { class: "tuner-group", role: "group", "aria-label": `${op} of ${name}` },
        ...amounts.map(({ amount, offer }, i) => this.makeButton(kernel, variant, offer, amount, i === 0)),
      );
    });
    const head = h(
      "span",
      { class: `tuner-axis axis-${line?.kind ?? ""}` },
      name,
      h("span", { class: "faint" }, line === undefined ? "" : ` ${String(line.size)} ${line.kind}`),
    );
    return h(
      "div",
      { class: "tuner-axis-row", "data-axis": axis },
      head,
      h("div", { class: "tuner-groups" }, ...groups),
    );
  }

  private makeButton(
    kernel: number,
    variant: KernelVariant,
    offer: OptOffer,
    amount: number,
    first: boolean,
  ): HTMLElement {
    const text = optText(offer.op, offer.axis, amount);
    const recorded = this.whatIf.withOpts(kernel, [...variant.opts, text]) !== null;
    const can = recorded || (this.whatIf.send !== null && this.whatIf.working === null);
    const says = amount === 0 ? "" : NAMES_AXIS.has(offer.op) ? nameAxis(variant, amount) : String(amount);
    const law = this.whatIf.lawsOf(offer.op);
    const why = can
      ? offer.caution === ""
        ? ""
        : `\nCaution: ${offer.caution}`
      : "\nNot recorded here: a notebook can try it";
    const show = (): void => this.explain(offer.op, offer.caution);
    return h(
      "button",
      {
        type: "button",
        class: [recorded ? "known" : "", offer.caution === "" ? "" : "has-caution"].join(" ").trim() || null,
        disabled: !can,
        "data-opt": text,
        title: `${text}${recorded ? " (tried already)" : ""}\n${law.map(lawText).join("\n\n")}${why}`,
        onclick: () => this.whatIf.apply(kernel, text),
        onmouseenter: show,
        onfocus: show,
        onmouseleave: () => this.explain(null),
      },
      first ? h("b", {}, offer.op) : null,
      first && says !== "" ? " " : null,
      says,
    );
  }

  /** Shows the law of a kind of opt, as text and as a loop nest before and after. */
  private explain(op: string | null, caution = ""): void {
    const laws = op === null ? [] : this.whatIf.lawsOf(op);
    const effects = laws.map((law) =>
      h(
        "div",
        {},
        h("p", {}, h("b", {}, law.name), ` ${law.words}`),
        h("div", { class: "tuner-before" }, h("pre", {}, law.before), h("span", {}, "→"), h("pre", {}, law.after)),
      ),
    );
    const mind = caution === "" ? null : h("p", { class: "tuner-caution" }, `Caution: ${caution}.`);
    this.law.replaceChildren(...effects, ...(mind === null ? [] : [mind]));
    if (op === null)
      this.law.append(
        h(
          "p",
          { class: "faint" },
          this.whatIf.send === null
            ? "A page opens recorded opts (blue); a notebook tries the others. Point at an opt to read its effect."
            : "Point at an opt to read its effect.",
        ),
      );
  }
}

function nameAxis(variant: KernelVariant, axis: number): string {
  const line = variant.nest.find((loop) => loop.axis === axis);
  return /^for (\w+)/.exec(line?.text ?? "")?.[1] ?? `axis ${axis}`;
}

function namesOf(offer: OptOffer, variant: KernelVariant): string {
  const amounts = offer.amounts.filter((amount) => amount > 0);
  return `${offer.op} ${nameAxis(variant, offer.axis)}${amounts.length > 0 ? ` by ${amounts.join(", ")}` : ""}:`;
}

function lawText({ words, before, after }: OptEffect): string {
  return `${words}:\n\n${before}\n→\n${after}`;
}
