// Requests to the engine's side: a notebook's kernel, over the channel of its widget. Requests and responses are plain
// data (`tinyexplore/explore/analysis/requests.py`). Therefore a page with engine can respond too, and a page without
// Python stores responses in one map.

import { DEFAULTS, type Question, type Responses } from "./requests";

export type {
  Edge,
  RecordedRewrite,
  Mismatch,
  ReturnSite,
  Question,
  PatternPart,
  RuleAttempt,
  WhyKernels,
  WhyNot,
} from "./requests";

/** The response to a request of the type `Q`. */
export type Response<Q extends Question> = Responses[Q["ask"]];

/** Returns the response, or throws an Error with the reason why there is none. */
export type SendRequest = <Q extends Question>(question: Q) => Promise<Response<Q>>;

/** Returns a request as a key, like Python's `request_key`: names sorted, fields with their default omitted. */
export function requestKey(question: Question): string {
  const defaults = DEFAULTS[question.ask] ?? {};
  return JSON.stringify(question, (name, value: unknown) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const entries = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
    if (name !== "") return Object.fromEntries(entries);
    return Object.fromEntries(
      entries.filter(([key, value]) => JSON.stringify(value ?? null) !== JSON.stringify(defaults[key] ?? null)),
    );
  });
}

/** The responses that a page stores, by canonical request. */
export class StoredResponses {
  constructor(private readonly map: Readonly<Record<string, unknown>> = {}) {}

  get<Q extends Question>(question: Q): Response<Q> | undefined {
    return this.map[requestKey(question)] as Response<Q> | undefined;
  }

  /** Returns all responses to one kind of request, each with its request. */
  of<A extends Question["ask"]>(ask: A): [question: Extract<Question, { ask: A }>, response: Responses[A]][] {
    return Object.entries(this.map)
      .map(([key, response]) => [JSON.parse(key), response] as [Extract<Question, { ask: A }>, Responses[A]])
      .filter(([question]) => question.ask === ask);
  }
}

/** The part of anywidget's model that this module uses. */
export interface Channel {
  send(content: unknown): void;
  on(event: "msg:custom", handler: (content: unknown) => void): void;
  off(event: "msg:custom", handler: (content: unknown) => void): void;
}

interface ResponseMessage {
  id?: string;
  answer?: { error?: string };
}

const PATIENCE_MS = 20_000; // another cell may keep the kernel busy

/**
 * Sends requests to Python over a widget's channel. `patience`: the timeout in milliseconds; null for none, as for
 * commands.
 */
export function sendOverChannel(channel: Channel, patience: number | null = PATIENCE_MS): SendRequest {
  const pageId = Math.random().toString(36).slice(2); // distinguishes this page from others that show the same widget
  let count = 0;
  return <Q extends Question>(question: Q) =>
    new Promise<Response<Q>>((resolve, reject) => {
      count += 1;
      const id = `${pageId} ${count}`;
      const finish = (act: () => void): void => {
        clearTimeout(timer);
        channel.off("msg:custom", onMessage);
        act();
      };
      const onMessage = (content: unknown): void => {
        const { id: requestId, answer } = content as ResponseMessage;
        if (requestId !== id || answer === undefined) return;
        finish(() => (answer.error === undefined ? resolve(answer as Response<Q>) : reject(new Error(answer.error))));
      };
      const giveUp = (): void =>
        finish(() => reject(new Error("Python does not respond. Check that its kernel is running and idle.")));
      const timer = patience === null ? undefined : setTimeout(giveUp, patience);
      channel.on("msg:custom", onMessage);
      channel.send({ id, question });
    });
}
