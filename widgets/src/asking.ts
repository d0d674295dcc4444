// Requests to whoever has the engine: a notebook's kernel, over the channel of its widget. A request and its response are
// plain data (`tinyexplore/explore/notebook/requests.py`), so a page that carries the engine answers them as well.

import type { Question } from "./requests";

export type { Edge, Fired, Obstacle, Place, Question, Tried, WhyKernels, WhyNot } from "./requests";

/** Gives the answer, or throws an Error that says why there is none. */
export type Ask = (question: Question) => Promise<unknown>;

/** What is needed of anywidget's model. */
export interface Channel {
  send(content: unknown): void;
  on(event: "msg:custom", handler: (content: unknown) => void): void;
  off(event: "msg:custom", handler: (content: unknown) => void): void;
}

interface Reply {
  id?: string;
  answer?: { error?: string };
}

const PATIENCE_MS = 20_000; // a kernel may be busy with a cell

/** Asks Python over a widget's channel. */
export function askOver(channel: Channel, patience = PATIENCE_MS): Ask {
  const own = Math.random().toString(36).slice(2); // other pages may show the same widget
  let count = 0;
  return (question) =>
    new Promise((resolve, reject) => {
      count += 1;
      const id = `${own} ${count}`;
      const finish = (act: () => void): void => {
        clearTimeout(timer);
        channel.off("msg:custom", hear);
        act();
      };
      const hear = (content: unknown): void => {
        const { id: of, answer } = content as Reply;
        if (of !== id || answer === undefined) return;
        finish(() => (answer.error === undefined ? resolve(answer) : reject(new Error(answer.error))));
      };
      const timer = setTimeout(
        () => finish(() => reject(new Error("Python does not answer: is its kernel running, and free?"))),
        patience,
      );
      channel.on("msg:custom", hear);
      channel.send({ id, question });
    });
}
