// The entry of a widget with one view: small, because a notebook stores it for each widget; the explorer brings the
// code.

import { hidePicture } from "./static_picture";
import type { Model } from "./session";
import { findSession } from "./session_registry";

interface PartModel extends Model {
  widget_manager: { get_model(id: string): Promise<{ get(name: string): unknown }> };
}

const REFERENCE = "IPY_MODEL_";

async function render({ model, el }: { model: PartModel; el: HTMLElement }): Promise<() => void> {
  const id = String(model.get("explorer")).slice(REFERENCE.length);
  const explorer = await model.widget_manager.get_model(id);
  const { session } = findSession(String(explorer.get("session")));
  if (model.get("view") === "question") return (await session).showQuestion(el, model);
  const stop = (await session).showView(el, model);
  const showPicture = hidePicture(String(model.get("picture")));
  return () => {
    stop();
    showPicture();
  };
}

export default { render };
