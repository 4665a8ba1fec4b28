// The thumbs for answers (`parts/rating.html`). A pressed thumb that is pressed again is taken away.
import { inHub } from "./addresses.js";

const THANKS = { up: "Thank you: the agent’s owner sees your thumb.", down: "Thank you: the agent’s owner sees your thumb.", none: "Your thumb is taken away." };
const NOTED = "Your note is sent.";
const NO_ANSWER = "The hub does not answer: try again.";

// `save(box, rating, note)` stores a rating; it throws an error whose message the page shows.
export function startRatings(root, save = saveByRest) {
  root.addEventListener("click", ({ target }) => {
    const button = target.closest("[data-rating] button");
    if (button) press(button, save);
  });
  root.addEventListener("keydown", (event) => {
    const box = event.target.closest("[data-note]");
    if (!box || event.key !== "Enter" || event.isComposing) return;
    event.preventDefault(); // the input may stand in the form of the next question
    press(box.querySelector("button"), save);
  });
}

async function press(button, save) {
  const box = button.closest("[data-rating]");
  const thumbs = [...box.querySelectorAll("[data-thumb]")];
  const pressed = thumbs.find((one) => one.ariaPressed === "true")?.dataset.thumb ?? "none";
  const { thumb } = button.dataset;
  const rating = !thumb ? pressed : thumb === pressed ? "none" : thumb;
  const input = box.querySelector("input");
  if (rating !== pressed) input.value = ""; // a note is about the thumb with which it was sent
  const note = input.value.trim();
  const status = box.querySelector("[role=status]");
  for (const one of box.querySelectorAll("button")) one.disabled = true;
  try {
    await save(box, rating, note);
    show(box, rating);
    status.textContent = thumb ? THANKS[rating] : NOTED;
  } catch (failure) {
    status.textContent = failure instanceof TypeError ? NO_ANSWER : failure.message;
  }
  for (const one of box.querySelectorAll("button")) one.disabled = false;
  button.focus();
}

// Show the rating that the hub has of an answer; `id`: of its ask or task.
export async function showStored(box, id) {
  const answer = await fetch(inHub(`/api/v1/questions/${encodeURIComponent(id)}/rating`), { credentials: "same-origin" });
  const { rating, note } = answer.ok ? await answer.json() : {};
  if (!rating) return;
  box.querySelector("input").value = note;
  show(box, rating);
}

function show(box, rating) {
  for (const one of box.querySelectorAll("[data-thumb]")) one.ariaPressed = String(one.dataset.thumb === rating);
  box.querySelector("[data-note]").hidden = rating === "none";
}

async function saveByRest(box, rating, note) {
  const isRemoved = rating === "none";
  const answer = await fetch(inHub(`/api/v1/questions/${encodeURIComponent(box.dataset.rating)}/rating`), {
    method: isRemoved ? "DELETE" : "PUT",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json" },
    body: isRemoved ? undefined : JSON.stringify({ rating, note }),
  });
  if (!answer.ok) throw new Error((await answer.json()).message);
}
