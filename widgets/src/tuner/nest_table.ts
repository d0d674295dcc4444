// The annotated loop nest of a kernel: the size of each loop, the accesses of one iteration, and reused data.

import { h } from "../dom";
import { findMeaning } from "../term_meanings";
import { bytes, groupDigits } from "../format";
import type { KernelVariant, NestLine, OperandAccess } from "../model";

const CACHES = ["L1", "L2", "L3", "memory"];

/** What the rows of loops call: `chosen` with the axis of a clicked loop, or null to show the opts of all loops. */
interface Loops {
  hovered: (axis: number | null) => void;
  chosen: (axis: number | null) => void;
  isChosen: (axis: number | null) => boolean;
}

export function makeNestTable(variant: KernelVariant, loops: Loops): HTMLElement {
  const rows = variant.nest.map((line) =>
    line.axis === null ? makeStatementRow(line) : makeLoopRow(line, variant, loops),
  );
  const sizes = variant.caches.map(([name, size]) => `${name} ${bytes(size)}`).join(" · ");
  const head = h(
    "tr",
    {},
    h("th", {}, "loop nest"),
    h(
      "th",
      { class: "num", title: `The memory that one iteration of the loop accesses, in cache lines\n${sizes}` },
      "bytes per iteration",
    ),
    h("th", { title: `The first cache that holds it\n${sizes}` }, "fits in"),
    h(
      "th",
      {
        title: "Operands that every iteration reads again. A cache or registers can hold these operands",
      },
      "reused",
    ),
  );
  return h("table", { class: "tuner-nest", "aria-label": "Loop nest" }, h("thead", {}, head), h("tbody", {}, ...rows));
}

function makeLoopRow(line: NestLine, variant: KernelVariant, loops: Loops): HTMLElement {
  const isChosen = loops.isChosen(line.axis);
  const choose = (): void => loops.chosen(isChosen ? null : line.axis);
  const name = /^for (\w+)/.exec(line.text)?.[1] ?? "";
  const again = line.touches.filter((touch) => touch.again);
  const level = CACHES.indexOf(line.cache);
  const room = variant.caches.find(([cache]) => cache === line.cache)?.[1];
  return h(
    "tr",
    {
      class: isChosen ? "tuner-loop chosen" : "tuner-loop",
      "data-axis": line.axis,
      onmouseenter: () => loops.hovered(line.axis),
      onmouseleave: () => loops.hovered(null),
      onclick: choose,
    },
    h(
      "td",
      {
        class: "tuner-line",
        style: `--depth:${line.depth}`,
        title: [
          findMeaning("axis", line.kind),
          isChosen ? "A click shows all opts" : "A click shows the opts of this loop",
        ]
          .filter(Boolean)
          .join("\n"),
      },
      h("span", { class: "t-keyword" }, "for "),
      h("b", { class: `axis-${line.kind}` }, name),
      ` in ${String(line.size)} `,
      h("span", { class: `tuner-kind axis-${line.kind}` }, line.kind),
    ),
    h(
      "td",
      { class: "num", title: line.touches.map(accessText).join("\n") || null },
      line.bytes > 0 ? bytes(line.bytes) : "–",
    ),
    h(
      "td",
      {},
      h(
        "span",
        {
          class: `tuner-cache level-${level}`,
          title: room === undefined ? null : `${bytes(line.bytes)} of ${bytes(room)}`,
        },
        line.cache,
      ),
    ),
    h("td", { class: "tuner-reuse" }, again.map(({ name: bufferName }) => bufferName).join(", ") || "–"),
  );
}

function makeStatementRow(line: NestLine): HTMLElement {
  return h(
    "tr",
    {},
    h(
      "td",
      { class: "tuner-line", colspan: 4, style: `--depth:${line.depth}` },
      h("code", { title: line.text }, line.text),
    ),
  );
}

function accessText({ name, bytes: size, again, stride }: OperandAccess): string {
  const moved = again ? "the same each step" : stride === null ? "moved" : `moved by ${groupDigits(stride)} each step`;
  return `${name}: ${bytes(size)}, ${moved}`;
}
