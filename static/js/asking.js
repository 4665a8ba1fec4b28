// The ask box: asks, follows the answer, stops following, looks again.
import { answerTo, ASKS, call, ENDED, exchange, isChunk, isNote, likeOurs, outcomeOf, question, textOf } from "./a2a.js";
import { explainEnd, explainError } from "./explain.js";

const SAID = { SUBMITTED: "Asked. Waiting for the agent…", WORKING: "The agent works on it…" };
const ENDS = { CANCELED: "Canceled.", INPUT_REQUIRED: "The agent asks back.", AUTH_REQUIRED: "The agent asks for leave." };
const ASKS_BACK = "Write above what you answer, and ask.";
const KEPT = "The agent goes on. Its answer is kept for half an hour: look again.";
const $ = (id) => document.getElementById(id);

// `onEnd()` after each question, however it ended. Gives {allow(mayAsk)}: whether the agent takes questions now.
export function startAsking(handle, { onEnd }) {
  const now = { mayAsk: !$("send").disabled, reading: null, taskId: "", ended: false, begun: 0 };

  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    if ($("send").disabled || !$("question").value.trim()) return;
    const text = $("question").value;
    const request = goesOn() ? answerTo(handle, text, now.taskId) : question(handle, text);
    Object.assign(now, { taskId: "", begun: performance.now() });
    clear();
    $("ask-status").textContent = "Asking…";
    follow(request);
  });
  $("question").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
  });
  $("ask").addEventListener("click", (event) => {
    const prompt = event.target.closest("[data-prompt]");
    if (prompt) fill(prompt.textContent);
  });
  $("stop").addEventListener("click", () => now.reading?.abort());
  $("again").addEventListener("click", () => follow(call(handle, "GetTask", { id: now.taskId })));

  async function follow(request) {
    const reading = (now.reading = new AbortController());
    now.ended = false;
    $("explained").textContent = "";
    enable();
    $("reply").ariaBusy = "true";
    try {
      await exchange(request, { signal: reading.signal, onTask, onError });
      if (!now.ended) left("Not answered yet.");
    } catch {
      left(reading.signal.aborted ? "Stopped following." : "The hub is out of reach.");
    }
    now.reading = null;
    $("reply").ariaBusy = "false";
    enable();
    onEnd();
  }

  function onTask(shown) {
    const task = likeOurs(shown);
    const { state } = task.status;
    now.taskId = task.id;
    if (isChunk(task)) $("reply").append(textOf(task.status.message));
    addStage(state);
    if (ENDED.has(state) || ASKS.has(state)) end(state, outcomeOf(task));
    else $("ask-status").textContent = isNote(task) ? textOf(task.status.message) : (SAID[state] ?? "");
    $("answer").scrollTop = $("answer").scrollHeight;
  }

  function end(state, text) {
    now.ended = true;
    $("reply").textContent = text;
    $("ask-status").textContent = state === "COMPLETED" ? `Answered in ${seconds()} s.` : (ENDS[state] ?? "Not answered.");
    $("going-on").hidden = !ASKS.has(state);
    $("go-on").checked = true;
    $("explained").textContent = ASKS.has(state) ? ASKS_BACK : state === "COMPLETED" ? "" : explainEnd(text).join(" ");
  }

  function onError(error) {
    now.ended = true;
    $("ask-status").textContent = "Not asked.";
    $("reply").textContent = error.message;
    $("explained").textContent = explainError(error).join(" ");
  }

  function left(why) {
    $("ask-status").textContent = why;
    $("explained").textContent = now.taskId ? KEPT : "";
  }

  function enable() {
    const isFollowing = now.reading !== null;
    $("send").disabled = isFollowing || !now.mayAsk;
    $("stop").disabled = !isFollowing;
    $("again").disabled = isFollowing || now.ended || !now.taskId;
    $("copy").disabled = isFollowing || !$("reply").textContent;
  }

  const seconds = () => Math.max(0.1, (performance.now() - now.begun) / 1000).toFixed(1);

  return {
    allow(mayAsk) {
      now.mayAsk = mayAsk;
      enable();
    },
  };
}

const goesOn = () => !$("going-on").hidden && $("go-on").checked;

function fill(text) {
  $("question").value = text;
  $("question").focus();
}

function clear() {
  for (const id of ["stages", "reply", "explained"]) $(id).replaceChildren();
  $("going-on").hidden = true;
}

function addStage(state) {
  const last = $("stages").lastElementChild;
  if (last?.textContent === state.toLowerCase().replace("_", " ")) return;
  const line = document.createElement("li");
  line.className = state;
  line.textContent = state.toLowerCase().replace("_", " ");
  $("stages").append(line);
}
