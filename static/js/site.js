// What every page has: the theme switch and the copy buttons.
import { startCopying } from "./copy.js";
import { startThemeSwitch } from "./theme_switch.js";

startThemeSwitch(document.querySelector("#theme"));
startCopying(document);
