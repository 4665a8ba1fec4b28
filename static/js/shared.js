// The page of a shared answer: shows the copy that the hub keeps, as the page of the agent shows an answer.
import { copyText } from "./copy.js";
import { readTask } from "./task_turns.js";
import { Turn } from "./turn.js";

const thread = document.getElementById("thread");
const turns = new Map();

for (const task of JSON.parse(document.getElementById("tasks").textContent)) readTask(task, addTurn);

function addTurn(parts, before) {
  const turn = new Turn(thread, parts, before);
  turns.set(turn.element, turn);
  return turn;
}

thread.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-do]");
  const turn = turns.get(target.closest(".turn"));
  if (!button || !turn) return;
  if (button.dataset.do === "copy") copyText(turn.text, turn.reply.element);
  else {
    button.ariaPressed = String(button.ariaPressed !== "true");
    turn.setRaw(button.ariaPressed === "true");
  }
});
