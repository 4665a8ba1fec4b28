// Sends the visitor's time zone with a form that asks for a day.
import { ZONE } from "./times.js";

const field = document.querySelector("input[name=tz]");
if (field) field.value = ZONE;
