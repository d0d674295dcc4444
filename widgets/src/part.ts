// The entry of a widget with one view: small, because a notebook stores it for each widget; the explorer brings the
// code.

import { hidePicture } from "./picture";
import type { Model } from "./session";
import { session } from "./sessions";

interface PartModel extends Model {
  widget_manager: { get_model(id: string): Promise<{ get(name: string): unknown }> };
}

const REFERENCE = "IPY_MODEL_";

async function render({ model, el }: { model: PartModel; el: HTMLElement }): Promise<() => void> {
  const id = String(model.get("explorer")).slice(REFERENCE.length);
  const explorer = await model.widget_manager.get_model(id);
  const { found } = session(String(explorer.get("session")));
  if (model.get("view") === "question") return (await found).showQuestion(el, model);
  const stop = (await found).showPart(el, model);
  const showPicture = hidePicture(String(model.get("picture")));
  return () => {
    stop();
    showPicture();
  };
}

export default { render };
