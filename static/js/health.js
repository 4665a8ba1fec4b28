// The same page again every few seconds: only what the hub counted changes.
import { load } from "./fragment.js";

const LOOK_EVERY_MS = 5000;

async function look() {
  if (!document.hidden) {
    const from = await load(location.pathname).catch(() => null);
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = from?.querySelector(`[data-live="${part.dataset.live}"]`);
      if (fresh) part.replaceChildren(...[...fresh.childNodes].map((node) => document.adoptNode(node)));
    }
    document.getElementById("stale").hidden = from !== null;
  }
  setTimeout(look, LOOK_EVERY_MS);
}

setTimeout(look, LOOK_EVERY_MS);
