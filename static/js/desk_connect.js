// The wizard's last step: poll until an agent has connected with the token, then show the next steps.
import { make } from "./elements.js";
import { SIGNED_OUT, showFailure, showReach } from "./failures.js";
import { toast } from "./toast.js";

const EVERY_MS = 1500;
const panel = document.querySelector("#arrival");

async function look() {
  let wait = EVERY_MS;
  try {
    const answer = await fetch(panel.dataset.state);
    if (answer.status === 401 || answer.status === 404) {
      showFailure(answer.status === 401 ? SIGNED_OUT : "This token was revoked.");
      return;
    }
    showReach(answer.ok);
    const found = answer.ok ? await answer.json() : {};
    if (found.connected) {
      show(found);
      return;
    }
  } catch {
    wait = 3 * EVERY_MS;
    showReach(false);
  }
  setTimeout(look, document.hidden ? 3 * wait : wait);
}

function show({ name, href, action }) {
  document.querySelector("#arrival-text").replaceChildren(make("span", "state on", "online"), ` ${name} is connected.`);
  const next = document.querySelector("#arrival-next");
  next.href = href;
  next.textContent = action;
  next.hidden = false;
  document.querySelector("#arrival-again").hidden = true;
  toast(`${name} is connected: go on below.`);
}

if (!("done" in panel.dataset)) look();
