// The registry in which the widgets of one page find their explorer's session. It is small, since every widget has it.

import type { Session } from "./session";

interface PendingSession {
  session: Promise<Session>;
  open: (session: Session) => void;
}

function readRegistry(): Map<string, PendingSession> {
  const page = globalThis as unknown as { tinyexploreSessions?: Map<string, PendingSession> };
  page.tinyexploreSessions ??= new Map();
  return page.tinyexploreSessions;
}

/** Returns the session of this name, when its explorer's model is ready. */
export function findSession(name: string): PendingSession {
  let waiting = readRegistry().get(name);
  if (waiting === undefined) {
    let open: PendingSession["open"] = () => undefined;
    const opened = new Promise<Session>((resolve) => (open = resolve));
    waiting = { session: opened, open };
    readRegistry().set(name, waiting);
  }
  return waiting;
}

export function removeSession(name: string): void {
  readRegistry().delete(name);
}
