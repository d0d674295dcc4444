// The anywidget entry: the payload comes as bytes in a trait; selection and cursor are kept equal on both sides.

import { type Handle, mount } from "./explorer";
import { readTrace } from "./payload";
import type { Cursor } from "./store";
import { h } from "./dom";

/** What this entry needs of anywidget's model. */
interface Model {
  get(name: "payload"): DataView | ArrayBuffer | Uint8Array;
  get(name: "selected"): number[];
  get(name: "cursor"): Partial<Cursor>;
  get(name: "height"): string;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, handler: () => void): void;
  off(event: string, handler: () => void): void;
}

function toBytes(value: DataView | ArrayBuffer | Uint8Array): Uint8Array {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
}

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  let handle: Handle | null = null;
  let version = 0;
  const open = async (): Promise<void> => {
    const data = toBytes(model.get("payload"));
    version += 1;
    const mine = version;
    try {
      const trace = await readTrace(data);
      if (mine !== version) return; // a newer payload overtook this one, or the view is gone
      handle?.destroy();
      el.replaceChildren();
      handle = mount(el, trace, {
        size: data.byteLength,
        height: model.get("height"),
        initial: { selected: model.get("selected"), cursor: model.get("cursor") },
        onSelect: (nodes) => {
          model.set("selected", nodes);
          model.save_changes();
        },
        onCursor: (cursor) => {
          model.set("cursor", cursor);
          model.save_changes();
        },
      });
    } catch (error) {
      if (mine !== version) return;
      el.replaceChildren(h("pre", { role: "alert" }, `The explorer cannot show this trace. ${String(error)}`));
    }
  };
  const onSelected = (): void => handle?.select(model.get("selected"));
  const onCursor = (): void => handle?.go(model.get("cursor"));
  const onPayload = (): void => void open();
  model.on("change:payload", onPayload);
  model.on("change:selected", onSelected);
  model.on("change:cursor", onCursor);
  void open();
  return () => {
    version += 1;
    model.off("change:payload", onPayload);
    model.off("change:selected", onSelected);
    model.off("change:cursor", onCursor);
    handle?.destroy();
  };
}

export default { render };
