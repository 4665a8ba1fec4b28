// The conversation with an agent: asks, follows answers, cancels, asks again, and opens the conversation of `?task=`.
import { call, exchange, newMessageId } from "./a2a.js";
import { Attachments } from "./attachments.js";
import { copyText } from "./copy.js";
import { about, sightOf } from "./dialects.js";
import { explainError } from "./explain.js";
import { inBytes } from "./elements.js";
import { showStored, startRatings } from "./rating.js";
import { readTask } from "./task_turns.js";
import { Turn } from "./turn.js";

const V1 = { version: "1.0", methods: { get: "GetTask", cancel: "CancelTask", subscribe: "SubscribeToTask" } };
const KEPT = "The agent goes on, and its answer is kept: follow again, or open this page later.";
const UNSURE = "It is not known whether the hub has your question. Try again: it is asked once, however often it is sent.";
const MISSING = "This conversation is not kept any more, or it is not yours. What you ask now begins another; My questions has how it ended.";
const NO_TASK = -32001;
const PER_PAGE = 20;
const IS_TOUCHED = matchMedia("(pointer: coarse)").matches; // on-screen keyboards have no Shift+Enter: Enter begins a line there
const $ = (id) => document.getElementById(id);

// Calls `onEnd()` after each question, however it ended. `contextId`: of the conversation that the page shows and
// continues; without it the address of the page names the task. Returns {allow(mayAsk, why)}, which sets
// whether the agent takes questions now.
export function startAsking(handle, { onEnd, contextId = "" }) {
  const form = $("ask");
  const { modes, maxBytes, maxFileBytes, maxFilesBytes } = form.dataset;
  const accepts = { modes: JSON.parse(modes), maxBytes: Number(maxBytes), maxFileBytes: Number(maxFileBytes), maxFilesBytes: Number(maxFilesBytes) };
  const now = { mayAsk: "mayAsk" in $("send").dataset, reading: null, turn: null, contextId };
  const fields = { list: $("files"), input: $("file"), button: $("attach"), area: form, error: $("ask-error"), status: $("files-status") };
  const attachments = new Attachments(fields, accepts, () => {
    $("question").required = attachments.isEmpty;
    update();
  });
  const turns = new Map(); // the turns by their elements

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = $("question").value.trim() ? [{ text: $("question").value }] : [];
    if (!$("send").disabled) ask([...text, ...attachments.parts], { isTyped: true });
  });
  $("question").addEventListener("keydown", (event) => {
    const isLine = event.shiftKey || (IS_TOUCHED && !event.ctrlKey);
    if (event.key !== "Enter" || isLine || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  form.addEventListener("click", ({ target }) => {
    const button = target.closest("button");
    const turn = turns.get(target.closest(".turn"));
    if (button?.dataset.prompt !== undefined) fill(button.textContent);
    if (turn && button?.dataset.do) DO[button.dataset.do](turn, button);
    if (turn && button?.dataset.decision) decide(turn, button.dataset);
  });
  $("new").addEventListener("click", startAnew);

  const DO = {
    stop: () => now.reading?.abort(),
    cancel,
    follow: followAgain,
    retry: (turn) => follow(turn, turn.request),
    again: (turn) => ask(turn.parts),
    edit: (turn) => fill(turn.question),
    copy: (turn) => copyText(turn.text, turn.reply.element),
    share: async ({ taskId }) => (await import("./share.js")).openShare({ taskId }),
    raw: (turn, button) => {
      button.ariaPressed = String(button.ariaPressed !== "true");
      turn.setRaw(button.ariaPressed === "true");
    },
  };

  function addTurn(parts, before = null) {
    const turn = new Turn($("thread"), parts, before);
    turns.set(turn.element, turn);
    form.classList.add("talking");
    return turn;
  }

  function ask(parts, { isTyped = false } = {}) {
    const before = isTyped && goesOn() ? now.turn : null;
    const message = { messageId: newMessageId(), role: "ROLE_USER", parts, contextId: now.contextId || undefined, taskId: before?.taskId };
    const request = call(handle, "SendStreamingMessage", { message }, V1.version);
    const bytes = new TextEncoder().encode(request.body).length;
    $("ask-error").textContent = $("thread-status").textContent = "";
    if (!parts.length || now.reading) return;
    if (bytes > accepts.maxBytes) {
      $("ask-error").textContent = `The question with its files has ${inBytes(bytes)}; this agent takes ${inBytes(accepts.maxBytes)} at most.`;
      return;
    }
    const turn = addTurn(parts, before);
    turn.request = { ...request, headers: { ...request.headers, "Idempotency-Key": message.messageId } };
    if (isTyped) {
      form.reset();
      attachments.clear();
    }
    turn.element.scrollIntoView({ block: "start", behavior: "instant" });
    follow(turn, turn.request);
  }

  // Send a request and show the answer as it arrives; returns the error if the hub refused the request, else null.
  async function follow(turn, request) {
    if (now.reading) return null;
    const reading = (now.reading = new AbortController());
    let refusal = null;
    Object.assign(now, { turn });
    turn.start();
    update();
    try {
      await exchange(request, { signal: reading.signal, onShown: (shown) => see(turn, shown), onError: (error) => (refusal = error) });
      if (refusal) turn.refuse(refusal);
      else if (!turn.isEnded) leave(turn, "Not answered yet.");
    } catch (failure) {
      if (!turn.isEnded) leave(turn, reading.signal.aborted ? "Stopped following." : "The connection to the hub was lost.");
      if (!reading.signal.aborted && !(failure instanceof TypeError)) throw failure;
    } finally {
      turn.stop();
      now.reading = null;
      update();
      onEnd();
    }
    return refusal;
  }

  function see(turn, shown) {
    const sight = sightOf(shown);
    if (sight.appends) keepEndInView(() => turn.see(sight));
    else turn.see(sight);
    now.contextId = sight.contextId ?? now.contextId;
    if (sight.taskId && !contextId) history.replaceState(null, "", `?task=${encodeURIComponent(sight.taskId)}`);
    if (turn.isEnded && turn === now.turn) now.reading?.abort(); // the hub keeps a subscription open while the agent waits for its caller
    update();
  }

  // Apply a change and scroll to the end of the thread, unless the visitor has scrolled up. For answers that grow: a complete
// answer is read from its beginning.
  function keepEndInView(change) {
    const isAtEnd = $("thread-end").getBoundingClientRect().top <= innerHeight;
    change();
    if (isAtEnd && turns.size) $("thread-end").scrollIntoView({ block: "end", behavior: "instant" });
  }

  const leave = (turn, why) => turn.leave(why, turn.taskId ? KEPT : UNSURE);

  // Get the task, then subscribe to its events. If the task ends between the two requests, get it once more.
  async function followAgain(turn) {
    await look(turn);
    if (turn.taskId && !turn.isEnded && (await follow(turn, about(V1, handle, "subscribe", turn.taskId)))) await look(turn);
  }

  async function look(turn) {
    const task = await fetchResult(about(V1, handle, "get", turn.taskId));
    if (task) see(turn, task);
    update();
  }

  async function cancel(turn, button) {
    button.disabled = true;
    turn.setStatus("Canceling…");
    const onShown = (shown) => {
      turn.see(sightOf(shown));
      if (now.turn === turn) now.reading?.abort();
    };
    try {
      await exchange(about(V1, handle, "cancel", turn.taskId), { onShown, onError: ({ message }) => turn.setStatus(message) });
    } catch {
      turn.setStatus("The hub does not answer: it is not canceled.");
    }
    button.disabled = false;
    update();
  }

  // Send the caller's decision on a permission request; the same turn continues.
  function decide(turn, { decision, request }) {
    const parts = [{ data: { requestId: request, decision } }];
    const message = { messageId: newMessageId(), role: "ROLE_USER", parts, contextId: now.contextId, taskId: turn.taskId };
    if (!now.reading) follow(turn, call(handle, "SendStreamingMessage", { message }, V1.version));
  }

  // Rate the answer of a turn by the extension of A2A; a rating belongs to the last turn of its task.
  async function rate(box, rating, note) {
    const { taskId } = turns.get(box.closest(".turn"));
    await exchange(call(handle, "RateTask", { id: taskId, rating, note }, V1.version), {
      onError: ({ message }) => {
        throw new Error(message);
      },
    });
  }

  function update() {
    const isFollowing = now.reading !== null;
    $("send").disabled = isFollowing || !now.mayAsk || attachments.isBusy;
    $("new").disabled = isFollowing || !turns.size;
    $("going-on").hidden = !now.turn?.asksBack;
    keepEndInView(() => {
      for (const turn of turns.values()) {
        turn.offer(...actionsOf(turn, isFollowing, turn === now.turn));
        turn.element.querySelector("[data-rating]").hidden = turn.state !== "COMPLETED" || !turn.taskId;
      }
    });
  }

  function startAnew() {
    turns.clear();
    Object.assign(now, { turn: null, contextId: "" });
    $("thread").replaceChildren();
    form.classList.remove("talking");
    history.replaceState(null, "", location.pathname);
    update();
    $("question").focus();
  }

  // Show the conversation of a task: the newest tasks of its context; then follow the last task if it has not ended.
  async function open(taskId) {
    const task = await fetchResult(about(V1, handle, "get", taskId));
    if (!task) return;
    now.contextId = task.contextId;
    const query = { contextId: task.contextId, pageSize: PER_PAGE, includeArtifacts: true };
    const page = await fetchResult(call(handle, "ListTasks", query, V1.version));
    const tasks = page?.tasks.toReversed() ?? [];
    $("thread-status").textContent = page?.nextPageToken ? "Earlier questions of this conversation are not shown." : "";
    for (const one of tasks.some(({ id }) => id === taskId) ? tasks : [task, ...tasks]) now.turn = readTask(one, addTurn);
    update();
    const answered = [...turns.values()].filter((turn) => turn.state === "COMPLETED" && turn.taskId); // at most a page of them
    for (const turn of answered) showStored(turn.element.querySelector("[data-rating]"), turn.taskId).catch(() => {}); // rate anew
    const target = [...turns.values()].find((turn) => turn.taskId === taskId);
    afterPaint(() => target?.element.scrollIntoView({ block: "start", behavior: "instant" }));
    if (now.turn && !now.turn.isEnded) await followAgain(now.turn);
  }

  async function fetchResult(request) {
    let result = null;
    const onError = (error) => ($("thread-status").textContent = error.code === NO_TASK ? MISSING : [error.message, ...explainError(error)].join(" "));
    try {
      await exchange(request, { onShown: (shown) => (result = shown), onError });
    } catch {
      $("thread-status").textContent = "The hub does not answer. Reload the page.";
    }
    return result;
  }

  startRatings($("thread"), rate);
  const opened = !contextId && new URLSearchParams(location.search).get("task");
  if (opened) open(opened);
  // The button is disabled until now: without this script the browser would submit the form, and the question would be lost.
  update();
  return {
    allow(mayAsk, why) {
      now.mayAsk = mayAsk;
      $("question").placeholder = mayAsk ? "" : why;
      update();
    },
  };
}

// The names of the actions to offer at a turn. While the page follows one turn, no other turn can be started.
function actionsOf(turn, isFollowing, isNow) {
  if (!isFollowing) return leftActions(turn);
  if (!isNow) return leftActions(turn).filter((name) => ["copy", "raw", "cancel"].includes(name));
  return turn.isEnded ? [] : ["stop", ...(turn.taskId ? ["cancel"] : [])];
}

// The actions at a turn that the page does not follow now.
function leftActions(turn) {
  const shown = turn.text ? ["copy", "raw"] : [];
  if (turn.state === "COMPLETED" || turn.asksBack) return turn.taskId ? [...shown, "share"] : shown;
  if (turn.isEnded && turn.state !== "CANCELED" && !turn.isTaken && turn.request) return [...shown, "retry", "edit"];
  if (turn.isEnded) return [...shown, "again", "edit"];
  if (turn.taskId && turn.isTaken) return [...shown, "follow", "cancel"];
  return turn.request ? [...shown, "retry", "edit"] : shown;
}

// Two frames later: elements that are added and scrolled to in one frame count as a layout shift.
const afterPaint = (act) => requestAnimationFrame(() => requestAnimationFrame(act));

const goesOn = () => !$("going-on").hidden && $("go-on").checked;

function fill(text) {
  $("question").value = text;
  $("question").focus();
}
