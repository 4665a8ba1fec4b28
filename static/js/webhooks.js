// Loads the list of deliveries, or one delivery, again and again. Pages of older deliveries (`?before=`) are not reloaded.
import { showReach } from "./failures.js";
import { load, replace } from "./fragment.js";

const LOOK_EVERY_MS = 1500;
const IDLE_EVERY_MS = 10_000;
const list = () => document.getElementById("deliveries");
const leaving = new AbortController(); // every form leads to another page, and one form deletes the webhook

async function look() {
  if (leaving.signal.aborted) return;
  if (!document.hidden) {
    const from = await load(list().dataset.address, leaving).catch(() => null);
    if (leaving.signal.aborted) return;
    showReach(from !== null);
    if (from && from.getElementById("deliveries").textContent !== list().textContent) update(from);
  }
  setTimeout(look, "moving" in list().dataset ? LOOK_EVERY_MS : IDLE_EVERY_MS);
}

// Replace the list, and keep its scroll position and focus.
function update(from) {
  const { scrollLeft = 0, scrollTop = 0 } = list().querySelector(".table-scroll") ?? {};
  const name = list().contains(document.activeElement) ? document.activeElement.getAttribute("aria-label") : null;
  replace("deliveries", from);
  list().querySelector(".table-scroll")?.scrollTo({ left: scrollLeft, top: scrollTop });
  const same = [...list().querySelectorAll("[aria-label]")].find((one) => one.getAttribute("aria-label") === name);
  same?.focus({ preventScroll: true });
}

document.addEventListener("submit", () => leaving.abort());
if (!new URLSearchParams(location.search).has("before")) setTimeout(look, 300);
