// Loads the state of an agent every 10 s while the page is visible, at once when it becomes visible, and on demand.
import { showReach } from "./failures.js";

const EVERY_MS = 10_000;
const GONE = { state: "gone", advice: "This agent is no longer here, or no longer open to you.", mayAsk: false };

// Calls `show(standing)` after each load; returns a function that loads the state now.
export function watch(address, show) {
  let timer = setTimeout(look, EVERY_MS);

  async function look() {
    clearTimeout(timer);
    const standing = await read(address);
    if (standing) show(standing);
    clearTimeout(timer);
    if (!document.hidden) timer = setTimeout(look, EVERY_MS);
  }

  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : look()));
  addEventListener("focus", look);
  return look;
}

// The state of the agent; null while the hub is out of reach: the page keeps showing the last state.
async function read(address) {
  try {
    const answer = await fetch(address);
    const is_gone = answer.status === 404;
    showReach(answer.ok || is_gone);
    if (is_gone) return GONE;
    return answer.ok ? await answer.json() : null;
  } catch {
    showReach(false);
    return null;
  }
}
