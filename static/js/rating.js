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
  const note = rating === "none" ? "" : box.querySelector("input").value.trim();
  const status = box.querySelector("[role=status]");
  for (const one of box.querySelectorAll("button")) one.disabled = true;
  try {
    await save(box, rating, note);
    for (const one of thumbs) one.ariaPressed = String(one.dataset.thumb === rating);
    box.querySelector("[data-note]").hidden = rating === "none";
    status.textContent = thumb ? THANKS[rating] : NOTED;
  } catch (failure) {
    status.textContent = failure instanceof TypeError ? NO_ANSWER : failure.message;
  }
  for (const one of box.querySelectorAll("button")) one.disabled = false;
  button.focus();
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
