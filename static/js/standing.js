// How an agent is: looked at every 10 s while the page is seen, at once when it is seen again, and on demand.
import { showReach } from "./failures.js";

const EVERY_MS = 10_000;
const GONE = { state: "gone", advice: "This agent is no longer here, or no longer open to you.", mayAsk: false };

// Calls `show(standing)` after each look; gives the function that looks now.
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

// Nothing while the hub is out of reach: what was seen last stays.
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
