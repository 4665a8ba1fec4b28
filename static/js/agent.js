// The page of one agent: its current state, and the ask box. Texts of the agent are shown by textContent.
import { watch } from "./standing.js";
import { startAsking } from "./asking.js";

const place = document.getElementById("handle");
const $ = (id) => document.getElementById(id);
const look = watch(place.dataset.standing, show);
const asking = $("ask") && startAsking(place.dataset.handle, { onEnd: look });

function show(standing) {
  const kind = { online: "on", busy: "busy" }[standing.state] ?? "off";
  write($("state"), standing.state);
  $("state").className = `state ${kind}`;
  write($("left"), standing.left);
  write($("typically"), standing.typically);
  write($("advice"), standing.advice);
  asking?.allow(standing.mayAsk, standing.advice);
}

// Writes a text only if it changed, so that screen readers announce only changes.
function write(element, text) {
  if (text !== undefined && element.textContent !== text) element.textContent = text;
}
