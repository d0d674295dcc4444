// The entry of a standalone question: the user guesses, then sees the answer; the views may be hidden until then.

import { hidePicture } from "./static_picture";
import { makeShell } from "./shell";
import type { Model, Session } from "./session";
import { type TourStop, makeQuestionCard } from "./views/tour";

/** Draws a question into `element` and, after the answer and if requested, the whole explorer below it. */
export function showQuestion(session: Session, element: HTMLElement, model: Model): () => void {
  const { root, release } = makeShell("Question", "auto", "auto");
  root.classList.add("part", "asks");
  const card = document.createElement("div");
  const below = document.createElement("div");
  root.append(card);
  element.append(root, below);
  let remove: (() => void) | null = null;
  const draw = (): void => {
    const guess = (model.get("guess") ?? null) as number | null; // a kernel in the browser sends None as undefined
    const take = (taken: number): void => {
      model.set("guess", taken);
      model.save_changes();
    };
    card.replaceChildren(
      makeQuestionCard(model.get("question") as TourStop, guess, take, (link) => session.follow(link)),
    );
    if (guess !== null && model.get("reveals") && remove === null) remove = session.showExplorer(below);
  };
  model.on("change:guess", draw);
  draw();
  const showPicture = hidePicture(String(model.get("picture")));
  return () => {
    model.off("change:guess", draw);
    remove?.();
    release();
    below.remove();
    showPicture();
  };
}
