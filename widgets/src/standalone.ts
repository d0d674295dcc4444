// The entry for a page of its own: `tinyexplore.mount`; a page that contains a trace mounts itself.

import { chunksOfPage, setCoreModules } from "./chunks";
import { h } from "./dom";
import type { Engine } from "./engine";
import { type Handle, type MountOptions, mount } from "./explorer";
import { fromBase64, readJson, readTrace } from "./payload";
import type { Runnable } from "./browser_run/messages";
import { shared } from "core:shared";

setCoreModules(shared);

const api = { mount, readTrace, fromBase64, handle: null as Handle | null };
(globalThis as Record<string, unknown>).tinyexplore = api;

async function mountPage(): Promise<void> {
  const holder = document.getElementById("trace");
  const root = document.getElementById("explorer");
  if (holder === null || root === null) return;
  try {
    document.body.style.margin = "0";
    const data = fromBase64(holder.textContent ?? "");
    const stored = document.getElementById("stored")?.textContent ?? "";
    const options = {
      ...(stored === "" ? {} : ((await readJson(fromBase64(stored))) as object)),
      ...JSON.parse(root.dataset.options ?? "{}"),
    } as MountOptions;
    const { runnable = [] } = options as { runnable?: Runnable[] };
    if (runnable.length > 0) {
      options.runHere = (panel, store) => {
        void chunksOfPage.load("browser_run").then(({ attach, css }) => {
          if (document.getElementById("run-here-style") === null)
            document.head.append(h("style", { id: "run-here-style" }, css ?? ""));
          attach?.(panel, store, runnable);
        });
      };
    }
    const engine = (globalThis as { tinyexploreEngine?: Engine }).tinyexploreEngine; // in a page with engine
    api.handle = mount(root, await readTrace(data), {
      size: data.byteLength,
      height: "100vh",
      page: true,
      engine,
      ...options,
    });
    await api.handle.ready;
    listenToPage(root.querySelector<HTMLElement>(".tinyexplore")!);
    document.documentElement.dataset.tinyexplore = "ready";
  } catch (error) {
    root.setAttribute("role", "alert");
    root.textContent = `The explorer cannot show this trace. ${String(error)}`;
    document.documentElement.dataset.tinyexplore = "failed";
  }
}

/** Handles shortcut keys before the first click. */
function listenToPage(root: HTMLElement): void {
  document.body.addEventListener("keydown", (event) => {
    if (event.target !== document.body) return;
    const { key, shiftKey, ctrlKey, metaKey, altKey } = event;
    const again = new KeyboardEvent("keydown", { key, shiftKey, ctrlKey, metaKey, altKey, cancelable: true });
    if (!root.dispatchEvent(again)) event.preventDefault();
  });
}

if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => void mountPage());
else void mountPage();
