// The bundle of pages with engine: it puts an engine into the page, which the explorer's own bundle finds there; a playground has
// an editor before it.

import { h } from "./dom";
import { PageEngine } from "./live/engine";
import css from "./live/live.css";
import { Playground } from "./live/playground";
import playgroundCss from "./live/playground.css";
import { fromBase64 } from "./payload";

const holder = document.getElementById("trace");
const engine = new PageEngine(holder === null ? null : fromBase64(holder.textContent ?? ""));
(globalThis as { tinyexploreEngine?: PageEngine }).tinyexploreEngine = engine;
const place = document.getElementById("playground");
document.head.append(h("style", {}, place === null ? css : css + playgroundCss));
if (place !== null) {
  place.classList.add("pg");
  new Playground(place, engine, JSON.parse(place.dataset.machines ?? "[]") as [string, string][]);
}
