// The search of the documentation, as one types: the hub finds and renders, with and without this script.
import { load, replace } from "./fragment.js";
import { showReach } from "./failures.js";

const AFTER_MS = 200;
const field = document.getElementById("q");
let timer = 0;
let running = new AbortController();

field.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(search, AFTER_MS);
});

async function search() {
  running.abort();
  running = new AbortController();
  const address = new URL(field.form.action);
  if (field.value.trim()) address.searchParams.set("q", field.value);
  try {
    replace("results", await load(address, running));
    history.replaceState(null, "", address);
    showReach(true);
  } catch (failure) {
    if (failure.name !== "AbortError") showReach(false);
  }
}
