"""A widget of this process in a browser tab without Jupyter: anywidget's model over the traits of the Python widget."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

# Messages of the view go to `answer`, which returns changed traits and messages. The tab also polls it.
MODEL = """async ([text, traits]) => {
  const values = {}, handlers = {}, said = {};
  const take = ({ state = {}, messages = [] }) => {
    for (const [name, value] of Object.entries(state)) {
      const bytes = value !== null && typeof value === 'object' && 'base64' in value;
      if (said[name] === JSON.stringify(value)) continue;
      said[name] = JSON.stringify(value);
      values[name] = bytes ? new DataView(Uint8Array.from(atob(value.base64), (c) => c.charCodeAt(0)).buffer) : value;
      for (const handler of handlers[`change:${name}`] ?? []) handler();
    }
    for (const content of messages) for (const handler of [...(handlers['msg:custom'] ?? [])]) handler(content);
  };
  take({ state: traits });
  const model = {
    get: (name) => values[name], set: (name, value) => { values[name] = value; }, save_changes: () => undefined,
    on: (event, handler) => (handlers[event] ??= []).push(handler),
    off: (event, handler) => { handlers[event] = handlers[event].filter((one) => one !== handler); },
    send: async (message) => take(await answer(JSON.stringify(message))),
  };
  window.model = model;
  window.poll = async () => take(await answer('null'));
  setInterval(() => void poll().catch(() => undefined), 100);
  const url = URL.createObjectURL(new Blob([text], { type: 'text/javascript' }));
  const { default: entry } = await import(url);
  entry.initialize({ model });
  const el = document.createElement('div');
  document.body.replaceChildren(el);
  await entry.render({ model, el });
}"""


def traits_of(widget: Any) -> dict[str, Any]:
    """The widget's state as JSON: the initial state of a front end."""
    state = {key: value for key, value in widget.get_state().items() if key not in ("_esm", "layout")}
    data = {
        key: {"base64": b64encode(value).decode()} if isinstance(value, (bytes, memoryview)) else value
        for key, value in state.items()
    }
    found: dict[str, Any] = json.loads(json.dumps(data))
    return found


class Served:
    """Shows a widget in a tab. Messages and traits of the widget reach the view; messages of the view reach the widget.

    Attributes:
        sent: all messages of the widget, in order.
    """

    def __init__(self, tab: Any, widget: Any, bundle: str) -> None:
        self.widget = widget
        self.sent: list[Any] = []
        self._sent_count = 0
        widget.send = lambda content, buffers=None: self.sent.append(content)
        tab.expose_function("answer", self.answer)
        tab.evaluate(MODEL, [bundle, traits_of(widget)])

    def answer(self, text: str) -> dict[str, Any]:
        message = json.loads(text)
        if message is not None:
            self.widget._handle_custom_msg(message, [])
        messages, self._sent_count = self.sent[self._sent_count :], len(self.sent)
        return json.loads(json.dumps({"state": {"working": self.widget.working}, "messages": messages}))


__all__ = ["MODEL", "Served", "traits_of"]
