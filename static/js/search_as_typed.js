// Searches while the visitor types. The hub finds and renders the results, so the form also works without this script.
import { showReach } from "./failures.js";
import { load } from "./fragment.js";

const AFTER_MS = 200;

// `addressOf(text)`: the address to load; `show(page, address)`: puts the loaded page on this one. Returns a function that searches at once.
export function searchAsTyped(field, addressOf, show) {
  let timer = 0;
  let running = new AbortController();

  async function search() {
    clearTimeout(timer);
    running.abort();
    running = new AbortController();
    const address = addressOf(field.value.trim());
    try {
      show(await load(address, running), address);
      showReach(true);
    } catch (failure) {
      if (failure.name !== "AbortError") showReach(false);
    }
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, AFTER_MS);
  });
  return search;
}
