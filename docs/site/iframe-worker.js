// A Worker for pages that a browser opens from a disk, where it starts none: the script runs in a hidden frame.
// The theme's search asks for `IFrameWorker` to find its files.
if (location.protocol === "file:") {
  class IFrameWorker extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inside = frame.contentWindow;
      this.inside = inside;
      this.ready = new Promise((resolve) => {
        window.addEventListener("message", (event) => {
          if (event.source !== inside) return;
          const message = new MessageEvent("message", { data: event.data });
          this.dispatchEvent(message);
          this.onmessage?.(message);
        });
        inside.importScripts = (...urls) =>
          urls.reduce(
            (before, one) =>
              before.then(
                () =>
                  new Promise((loaded) => {
                    const script = inside.document.createElement("script");
                    script.onload = script.onerror = loaded;
                    script.src = one;
                    inside.document.body.append(script);
                  }),
              ),
            Promise.resolve(),
          );
        inside.document.open();
        inside.document.write(
          "<!doctype html><body><script>self.postMessage = (data) => parent.postMessage(data, '*')</" + "script>",
        );
        const script = inside.document.createElement("script");
        script.onload = resolve;
        script.src = url;
        inside.document.body.append(script);
        inside.document.close();
      });
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {}
  }
  window.IFrameWorker = IFrameWorker;
  window.Worker = IFrameWorker;
}
