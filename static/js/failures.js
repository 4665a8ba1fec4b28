// Shows what failed on this page, in lines that stay until the visitor closes them or the failure is over. Every page
// loads this module first, and the module imports nothing: so it also reports another module that did not load.
export const SIGNED_OUT = "You are signed out: load the page again.";
const OUT_OF_REACH = "The hub does not answer, and what you see may be old. This page tries again by itself.";
const MAX_LINES = 3;
const lines = new Map();
let is_reached = true;

// Show a text once, however often it fails.
export function showFailure(text) {
  if (lines.has(text)) return;
  const line = document.createElement("p");
  line.className = "notice error";
  line.setAttribute("role", "alert");
  const close = document.createElement("button");
  Object.assign(close, { type: "button", className: "quiet", textContent: "Close" });
  close.addEventListener("click", () => hideFailure(text));
  line.append(text, close);
  lines.set(text, line);
  document.getElementById("failures").append(line);
  if (lines.size > MAX_LINES) hideFailure(lines.keys().next().value);
}

export function hideFailure(text) {
  lines.get(text)?.remove();
  lines.delete(text);
}

// Called after each request that a page repeats. A line that the visitor closed can return only after a success.
export function showReach(is_reached_now) {
  if (is_reached && !is_reached_now) showFailure(OUT_OF_REACH);
  if (is_reached_now) hideFailure(OUT_OF_REACH);
  is_reached = is_reached_now;
}

// The error event of a script that does not load does not bubble: `true` listens in the capture phase.
addEventListener(
  "error",
  ({ target, message }) => {
    if (target === window) showFailure(`A script of this page failed: ${message}. Reload the page.`);
    else if (target instanceof HTMLScriptElement) showFailure(`A script of this page did not load: ${target.src}. Reload the page.`);
  },
  true,
);
addEventListener("unhandledrejection", ({ reason }) => showFailure(`A script of this page failed: ${reason}. Reload the page.`));
