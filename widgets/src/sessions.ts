// The registry in which the widgets of one page find their explorer's session; minimal, since every widget contains
// it.

import type { Session } from "./session";

interface Waiting {
  found: Promise<Session>;
  open: (session: Session) => void;
}

function sessions(): Map<string, Waiting> {
  const page = globalThis as unknown as { tinyexploreSessions?: Map<string, Waiting> };
  page.tinyexploreSessions ??= new Map();
  return page.tinyexploreSessions;
}

/** Returns the session of this name, when its explorer's model is ready. */
export function session(name: string): Waiting {
  let waiting = sessions().get(name);
  if (waiting === undefined) {
    let open: Waiting["open"] = () => undefined;
    const opened = new Promise<Session>((resolve) => (open = resolve));
    waiting = { found: opened, open };
    sessions().set(name, waiting);
  }
  return waiting;
}

export function forget(name: string): void {
  sessions().delete(name);
}
