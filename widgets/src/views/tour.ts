// Tours and questions: notes at positions of a trace, and guesses that the trace grades; both work without Python.

import { button, h, replaceChildren } from "../dom";

/** A position with a note. With `choices` it is a question, whose answer is shown after a guess. */
export interface TourStop {
  text: string;
  /** The position: `#stage=4&step=2`. */
  link: string;
  choices: string[];
  /** The index of the right choice. */
  answer: number | null;
  /** The explanation from the trace. */
  reveal: string;
  /** The position that shows it. */
  after: string;
}

/** Creates a question with its choices; after a guess it shows the right one, and why. */
export function makeQuestionCard(
  stop: TourStop,
  guess: number | null,
  take: (guess: number) => void,
  show: (link: string) => void,
): HTMLElement {
  const isOpen = guess === null;
  const choices = stop.choices.map((choice, i) => {
    const verdict = isOpen ? "" : i === stop.answer ? "right" : i === guess ? "wrong" : "other";
    const sign = verdict === "right" ? "✓ " : verdict === "wrong" ? "✗ " : "";
    const element = button(
      `${sign}${choice}`,
      isOpen ? `Guess: ${choice}` : choice,
      () => take(i),
      `choice ${verdict}`,
    );
    element.disabled = !isOpen;
    return element;
  });
  const result = guess === stop.answer ? "Right. " : "Not correct. ";
  const shows =
    stop.after === "" ? null : button("Show me", "Show the answer in the explorer", () => show(stop.after), "next");
  const reveal = isOpen
    ? h("p", { class: "faint" }, "Guess first. Then the trace shows the answer.")
    : h("p", { class: "reveal" }, h("b", {}, result), stop.reveal);
  return h(
    "div",
    { class: "question" },
    h("p", { class: "note-text" }, stop.text),
    h("div", { class: "choices", role: "group", "aria-label": "Choices" }, ...choices),
    h("div", { class: "verdict", role: "status" }, reveal, isOpen ? null : shows),
  );
}

export class TourView {
  readonly element = h("section", { class: "tour", "aria-label": "Tour" });
  private stopIndex = 0;
  private readonly guesses = new Map<number, number>();

  /** `open`: goes to a link. */
  constructor(
    private readonly stops: readonly TourStop[],
    private readonly open: (link: string) => void,
  ) {}

  /** Goes to the stop after (1) or before (-1). */
  move(direction: 1 | -1): void {
    this.go(this.stopIndex + direction);
  }

  go(stopIndex: number): void {
    if (this.stops[stopIndex] === undefined) return;
    this.stopIndex = stopIndex;
    this.open(this.stops[stopIndex].link);
    this.draw();
  }

  private draw(): void {
    const stop = this.stops[this.stopIndex];
    const card =
      stop.choices.length > 0 ? this.makeQuestion(stop) : h("p", { class: "note-text", role: "status" }, stop.text);
    const dots = this.stops.map((stop, i) => {
      const dot = button("", `Stop ${i + 1}: ${stop.text}`, () => this.go(i), "dot");
      if (i === this.stopIndex) dot.setAttribute("aria-current", "step");
      return dot;
    });
    const back = button("←", "Previous stop ([)", () => this.move(-1));
    const on = button(`${this.stopIndex + 1} of ${this.stops.length} →`, "Next stop (])", () => this.move(1), "next");
    const again = button(
      "go to this position",
      "Go to the position of this note again",
      () => this.open(stop.link),
      "quiet",
    );
    back.disabled = this.stopIndex === 0;
    on.disabled = this.stopIndex === this.stops.length - 1;
    replaceChildren(
      this.element,
      h("div", { class: "pinned" }, card),
      h(
        "div",
        { class: "tour-turn" },
        h("span", { class: "dots" }, ...dots),
        h("span", { class: "space" }),
        again,
        back,
        on,
      ),
    );
  }

  private makeQuestion(stop: TourStop): HTMLElement {
    const take = (guess: number): void => {
      this.guesses.set(this.stopIndex, guess);
      this.draw();
    };
    return makeQuestionCard(stop, this.guesses.get(this.stopIndex) ?? null, take, this.open);
  }
}
