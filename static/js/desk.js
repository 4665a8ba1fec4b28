// The desk: loads the states of agents and sessions every few seconds while the page is visible.
import { inHub } from "./addresses.js";
import { markZone } from "./desk_zone.js";
import { SIGNED_OUT, showFailure, showReach } from "./failures.js";

const EVERY_MS = 4000;
const CLASSES = { online: "on", busy: "busy", offline: "off" };

const sessions = [...document.querySelectorAll("[data-session]")];
const agents = [...document.querySelectorAll("[data-agent]")];

function address() {
  const query = new URLSearchParams();
  for (const id of new Set(sessions.map((one) => one.dataset.session))) query.append("session", id);
  for (const one of agents) query.append("agent", one.dataset.agent);
  return inHub(`/desk/states?${query}`);
}

function show(states) {
  for (const one of sessions) {
    const state = states.sessions[one.dataset.session] ?? "offline";
    const mark = one.querySelector(".state");
    if (mark.textContent === state) continue;
    mark.textContent = state;
    mark.className = `state ${CLASSES[state]}`;
  }
  for (const one of agents) {
    const used = states.agents[one.dataset.agent];
    if (used === undefined) continue;
    one.querySelector("[data-left]").textContent = Math.max(0, Number(one.dataset.budget) - used);
  }
}

async function look() {
  if (!document.hidden) {
    try {
      const answer = await fetch(address());
      if (answer.status === 401) return showFailure(SIGNED_OUT);
      if (answer.ok) show(await answer.json());
      showReach(answer.ok);
    } catch {
      showReach(false);
    }
  }
  return setTimeout(look, EVERY_MS);
}

// The chosen agents: the box for all shows whether all, some or none are checked; the buttons need at least one agent.
const bulk = document.getElementById("bulk");
const boxes = [...document.querySelectorAll("input[form=bulk]")];

function showChosen() {
  const count = boxes.filter((box) => box.checked).length;
  const all = document.getElementById("all");
  all.checked = count === boxes.length;
  all.indeterminate = count > 0 && count < boxes.length;
  document.getElementById("chosen").textContent = count > 0 ? `${count} chosen` : "None chosen";
  for (const button of bulk.querySelectorAll("button")) button.disabled = count === 0;
}

if (bulk) {
  document.getElementById("all").addEventListener("change", (event) => {
    for (const box of boxes) box.checked = event.target.checked;
    showChosen();
  });
  for (const box of boxes) box.addEventListener("change", showChosen);
  addEventListener("pageshow", showChosen); // a browser that returns to the page keeps the checked boxes
  showChosen();
}

markZone();
if (sessions.length > 0) setTimeout(look, EVERY_MS);
