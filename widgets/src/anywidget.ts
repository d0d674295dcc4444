// The anywidget entry: a session opens with the model, before any view; all views are views of this session.

import { setCoreModules } from "./chunks";
import { type Model, Session } from "./session";
import { findSession, removeSession } from "./session_registry";
import { hidePicture } from "./static_picture";
import { shared } from "core:shared";

setCoreModules(shared);

function initialize({ model }: { model: Model }): () => void {
  const name = String(model.get("session"));
  const opened = new Session(model);
  findSession(name).open(opened);
  return () => {
    opened.close();
    removeSession(name);
  };
}

async function render({ model, el }: { model: Model; el: HTMLElement }): Promise<() => void> {
  const { session } = findSession(String(model.get("session")));
  const stop = (await session).showExplorer(el);
  const showPicture = hidePicture(String(model.get("picture")));
  return () => {
    stop();
    showPicture();
  };
}

export default { initialize, render };
