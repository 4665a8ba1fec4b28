// What every page has: the theme switch, the copy buttons, and times in the visitor's time zone.
import { startCopying } from "./copy.js";
import { startThemeSwitch } from "./theme_switch.js";
import { startTimes } from "./times.js";

startThemeSwitch(document.querySelector("#theme"));
startCopying(document);
startTimes();
