// What every page has: the theme switch, the copy buttons, and a word when a script fails.
import { startCopying } from "./copy.js";
import { startThemeSwitch } from "./theme_switch.js";
import { toast } from "./toast.js";

startThemeSwitch(document.querySelector("#theme"));
startCopying(document);
for (const failure of ["error", "unhandledrejection"]) {
  addEventListener(failure, (event) => toast(`A script of this page failed: ${event.message ?? event.reason}. Reload the page.`));
}
