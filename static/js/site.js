// The scripts of every page: the theme switch, copy buttons, times in the visitor's time zone, the command palette, and a
// key for the search.
import { addCopyButtons, startCopying } from "./copy.js";
import { startThemeSwitch } from "./theme_switch.js";
import { startTimes } from "./times.js";

startThemeSwitch(document.querySelector("#theme"));
startCopying(document);
addCopyButtons();
startTimes();

// Ctrl+K and the button in the header open the command palette, whose script is loaded then.
let open = null;
const openPalette = async () => {
  open ??= (await import("./palette.js")).openPalette;
  open(); // at once from the second time on, so that the next key is written into its field
};
document.getElementById("open-palette")?.addEventListener("click", openPalette);
document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
  if (document.querySelector("dialog[open]:not(.palette)")) return;
  event.preventDefault();
  openPalette();
});

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
