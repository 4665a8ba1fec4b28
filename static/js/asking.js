// The ask box: asks, follows the answer, stops following, looks again.
import { ASKS, ENDED, exchange, newMessageId, textOf } from "./a2a.js";
import { about, asking, Reply, sightOf } from "./dialects.js";
import { explainEnd, explainError } from "./explain.js";

const V1 = {
  version: "1.0",
  methods: { stream: "SendStreamingMessage", get: "GetTask" },
  message: { role: "ROLE_USER", parts: [{}] },
};
const SAID = { SUBMITTED: "Asked. Waiting for the agent…", WORKING: "The agent works on it…" };
const ENDS = { CANCELED: "Canceled.", INPUT_REQUIRED: "The agent asks back.", AUTH_REQUIRED: "The agent asks for a permission." };
const ASKS_BACK = "Write above what you answer, and ask.";
const KEPT = "The agent goes on. Its answer is kept for half an hour: look again.";
const $ = (id) => document.getElementById(id);

// `onEnd()` after each question, however it ended. Gives {allow(mayAsk)}: whether the agent takes questions now.
export function startAsking(handle, { onEnd }) {
  const now = { mayAsk: "mayAsk" in $("send").dataset, reading: null, reply: new Reply(), taskId: "", ended: false, begun: 0 };

  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    if ($("send").disabled || !$("question").value.trim()) return;
    const how = { how: "stream", messageId: newMessageId(), taskId: goesOn() ? now.taskId : "" };
    Object.assign(now, { taskId: "", begun: performance.now() });
    clear();
    $("ask-status").textContent = "Asking…";
    follow(asking(V1, handle, $("question").value, how));
  });
  $("question").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("ask").requestSubmit();
  });
  $("ask").addEventListener("click", (event) => {
    const prompt = event.target.closest("[data-prompt]");
    if (prompt) fill(prompt.textContent);
  });
  $("stop").addEventListener("click", () => now.reading?.abort());
  $("again").addEventListener("click", () => follow(about(V1, handle, "get", now.taskId)));

  async function follow(request) {
    const reading = (now.reading = new AbortController());
    Object.assign(now, { ended: false, reply: new Reply() });
    $("explained").textContent = "";
    enable();
    $("reply").ariaBusy = "true";
    try {
      await exchange(request, { signal: reading.signal, onShown, onError });
      if (!now.ended) left("Not answered yet.");
    } catch {
      left(reading.signal.aborted ? "Stopped following." : "The hub is out of reach.");
    }
    now.reading = null;
    $("reply").ariaBusy = "false";
    enable();
    onEnd();
  }

  function onShown(shown) {
    const sight = sightOf(shown);
    now.taskId = sight.taskId;
    now.reply.see(sight);
    if (sight.state) onState(sight.state, textOf(sight.message));
    else now.reply.write($("reply"), sight);
    $("answer").scrollTop = $("answer").scrollHeight;
  }

  function onState(state, words) {
    addStage(state);
    if (ENDED.has(state) || ASKS.has(state)) end(state, state === "COMPLETED" ? now.reply.text : words);
    else $("ask-status").textContent = words || (SAID[state] ?? "");
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

  // The button is disabled until here: before, the browser would submit the form itself, and the question would be lost.
  enable();
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
