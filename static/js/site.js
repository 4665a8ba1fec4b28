// The scripts of every page: the theme switch, copy buttons, times in the visitor's time zone, and a key for the search.
import { addCopyButtons, startCopying } from "./copy.js";
import { startThemeSwitch } from "./theme_switch.js";
import { startTimes } from "./times.js";

startThemeSwitch(document.querySelector("#theme"));
startCopying(document);
addCopyButtons();
startTimes();

// The slash puts the cursor into the search that declares it, unless the visitor is writing.
const search = document.querySelector("[aria-keyshortcuts='/']");
if (search) document.addEventListener("keydown", focusSearch);

function focusSearch(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  search.focus();
  search.select();
}
