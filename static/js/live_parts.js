// Loads the page again every few seconds, and replaces the parts whose HTML from the hub has changed.
import { load } from "./fragment.js";

const LOOK_EVERY_MS = 5000;
const shown = new Map(); // the HTML of each part from the hub, in which times are still in UTC

async function look() {
  if (!document.hidden) {
    const from = await load(location.pathname + location.search).catch(() => null);
    for (const part of document.querySelectorAll("[data-live]")) {
      const fresh = from?.querySelector(`[data-live="${part.dataset.live}"]`);
      if (!fresh || shown.get(part.dataset.live) === fresh.innerHTML) continue;
      if (part.contains(document.activeElement) && document.activeElement !== part) continue; // replacing the part would lose the focus
      shown.set(part.dataset.live, fresh.innerHTML);
      part.replaceChildren(...[...fresh.childNodes].map((node) => document.adoptNode(node)));
    }
    document.getElementById("stale").hidden = from !== null;
  }
  setTimeout(look, LOOK_EVERY_MS);
}

setTimeout(look, LOOK_EVERY_MS);
