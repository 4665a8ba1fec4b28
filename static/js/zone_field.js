// A form that asks for a day asks for it in the visitor's time zone.
import { ZONE } from "./times.js";

const field = document.querySelector("input[name=tz]");
if (field) field.value = ZONE;
