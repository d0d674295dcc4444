// Why these opts: the decisions of the default schedule in order, their compared numbers and scores, and their
// results.

import { h } from "../dom";
import { paragraphs } from "../format";
import { makeComparisons } from "../fusion_decisions";
import type { Choice, OptStep, Stage, OptionScores } from "../model";

const MOST_OPTIONS = 8;

/** Returns a row for each decision of a stage; those that proposed opts are emphasized. */
export function makeChoiceRows(stage: Stage): Element[] {
  return stage.choices.map((choice) =>
    makeRow(
      choice,
      choice.opts.map((place) => stage.opts[place]),
    ),
  );
}

function makeRow(choice: Choice, opts: OptStep[]): Element {
  const outcomeText =
    choice.settled_by !== ""
      ? `skipped: ${choice.settled_by} already settled this aspect`
      : opts.length === 0
        ? "nothing"
        : "";
  return h(
    "details",
    { class: `attempt ${opts.length > 0 ? "fires" : "stopped"}` },
    h(
      "summary",
      {},
      h("b", {}, choice.name),
      ...opts.map((opt) => h("span", { class: opt.applied ? "added" : "removed" }, opt.opt)),
      h("span", { class: "faint" }, outcomeText),
    ),
    h(
      "div",
      { class: "more" },
      ...opts.map(({ opt, applied, reason }) =>
        h(
          "p",
          {},
          h("code", { class: applied ? "added" : "removed" }, opt),
          `${applied ? "" : " is not legal"}: ${reason}`,
        ),
      ),
      ...choice.weighed.map(listOptions),
      choice.compared.length === 0 ? null : makeComparisons(choice),
      ...paragraphs(choice.law).map(({ text, formula }) =>
        formula ? h("div", { class: "law" }, text) : h("p", { class: "faint" }, text),
      ),
    ),
  );
}

/** Returns the scored options, the best first, with the chosen one emphasized. */
function listOptions({ what, options: all, chosen, least }: OptionScores): Element {
  const sorted = [...all].sort(([, a], [, b]) => (least ? a - b : b - a));
  const visibleOptions = sorted.slice(0, MOST_OPTIONS);
  const listed = visibleOptions.some(([name]) => name === chosen)
    ? visibleOptions
    : [...visibleOptions, ...sorted.filter(([name]) => name === chosen)];
  const cells = listed.flatMap(([name, score]) => {
    const mark = name === chosen ? "added" : null;
    return [
      h("dt", { class: mark }, name),
      h("dd", { class: mark }, `${Number(score.toPrecision(4))}${name === chosen ? " · chosen" : ""}`),
    ];
  });
  const more = all.length - listed.length;
  return h(
    "div",
    {},
    h("p", {}, `${what}:`),
    h("dl", { class: "values" }, ...cells),
    more > 0 ? h("p", { class: "faint" }, `and ${more} more`) : null,
  );
}
