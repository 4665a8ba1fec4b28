// My questions: days in the visitor's time zone, and the replies of the tasks that the hub still keeps.
import { inHub } from "./addresses.js";
import { SIGNED_OUT, showFailure } from "./failures.js";
import { ZONE } from "./times.js";

const FAILED = "The replies could not be loaded: load the page again.";
const NOT_LOADED = "Its reply is not loaded: open the conversation to read it.";
const GONE = "Its task is no longer kept, and so its reply.";
const NO_TEXT = "No text: open the conversation to see all of it.";
const UNDER_WAY = "No reply yet.";
const rows = new Map([...document.querySelectorAll("[data-question]")].map((row) => [row.dataset.question, row]));

document.querySelector("input[name=tz]").value = ZONE;
if (rows.size) showReplies();

async function showReplies() {
  const found = await read();
  for (const one of found) show(one);
  // The rows that the response does not have: the request failed, or the list changed since the page was rendered.
  for (const row of rows.values()) write(row, NOT_LOADED);
}

// Load the list of this page over REST, which has the texts of replies.
async function read() {
  try {
    const { list } = document.querySelector("[data-list]").dataset;
    const answer = await fetch(inHub(`/api/v1/questions?${list}`), { credentials: "same-origin" });
    if (answer.ok) return (await answer.json()).items;
    showFailure(answer.status === 401 ? SIGNED_OUT : FAILED);
  } catch {
    showFailure(FAILED);
  }
  return [];
}

function show({ id, isKept, state, reply, replyPreview }) {
  const row = rows.get(id);
  if (!row) return;
  const is_open = state === "open" || state === "queued";
  if (!isKept && !is_open) row.querySelector(".task")?.remove();
  const text = replyPreview ?? (is_open ? UNDER_WAY : isKept ? NO_TEXT : GONE);
  // An empty text keeps its space, so that the rows below do not move.
  if (saysNoMore(row, reply)) write(row, "");
  else write(row, text, replyPreview !== null);
  rows.delete(id);
}

// True if the row already says why there is no answer, and the task's text is not the agent's own.
function saysNoMore(row, reply) {
  const { end } = row.querySelector(".reply").dataset;
  return end && (reply === null || new RegExp(end).test(reply));
}

// Rows without a task have no element for the script: the hub has written a note there.
function write(row, text, is_reply = false) {
  const place = row.querySelector(".reply.scripted");
  if (!place) return;
  place.textContent = text;
  place.classList.toggle("dim", !is_reply);
}
