// One question and its answer in a conversation, in bubbles that grow while the answer arrives. The markup is a template
// of `agents/ask.html`; `parts.js` shows what the caller and the agent wrote.
import { ASKS, ENDED, textOf } from "./a2a.js";
import { inHub } from "./addresses.js";
import { Artifacts } from "./artifacts.js";
import { isReply } from "./dialects.js";
import { make } from "./elements.js";
import { explainEnd, explainError } from "./explain.js";
import { PartsView } from "./parts.js";

const STATES = { SUBMITTED: "Asked. Waiting for the agent…", WORKING: "The agent works on it…" };
const ENDS = { CANCELED: "Canceled.", REJECTED: "Declined.", INPUT_REQUIRED: "The agent asks back.", AUTH_REQUIRED: "The agent asks you to sign in or to authorise it." };
const EVERY_MS = 1000;

export class Turn {
  taskId = "";
  state = "";
  isTaken = false; // the hub accepted the question: an end from now on is no refusal
  request = null; // the sent request, to be repeated with the same Idempotency-Key
  #replies = new Map();
  #notes = new Set();
  #timer = 0;
  #begun = 0;

  // `before`: the turn of the same task that this turn continues.
  constructor(thread, parts, before = null) {
    this.parts = parts;
    this.element = document.getElementById("turn").content.firstElementChild.cloneNode(true);
    thread.append(this.element);
    this.question = parts.filter(isWritten).map(({ text }) => text).join("\n");
    this.#find("question-text").textContent = this.question;
    new PartsView(this.#find("question-parts")).show(parts.filter((part) => !isWritten(part)));
    this.reply = new PartsView(this.#find("reply"));
    this.words = new PartsView(this.#find("words"));
    this.artifacts = new Artifacts(this.#find("artifacts"), PartsView, { before: before?.artifacts });
    this.replyIds = new Set(before?.replyIds);
    this.#replies = new Map([...this.replyIds].map((id) => [id, null]));
  }

  get isEnded() {
    return ENDED.has(this.state) || ASKS.has(this.state);
  }

  // True if the caller's next message may answer the agent's question.
  get asksBack() {
    return ASKS.has(this.state) && !this.#find("approvals").childElementCount;
  }

  // The agent's texts as they were sent.
  get text() {
    return [this.reply.text, this.words.text, this.artifacts.text].filter(Boolean).join("\n\n");
  }

  see({ taskId, state, at, message, artifacts = [], appends }) {
    this.taskId = taskId ?? this.taskId;
    for (const { artifactId, parts = [] } of artifacts.filter((one) => isReply(one.artifactId))) this.#seeReply(artifactId, parts, appends);
    this.artifacts.see({ artifacts, appends });
    if (state) this.#seeState(state, message, at);
  }

  // Show a note on the agent's progress, each id once.
  note(id, text) {
    if (!text || this.#notes.has(id)) return;
    this.#notes.add(id);
    const list = this.#find("notes");
    list.querySelector("ol").append(make("li", "said", text));
    list.querySelector("summary").textContent = `${this.#notes.size} step${this.#notes.size === 1 ? "" : "s"}`;
    list.hidden = false;
  }

  // Show a message that asks the caller: text, forms as data, and permission requests with buttons.
  ask({ parts = [] } = {}) {
    const approvals = parts.filter((part) => part.data?.type === "approval_request");
    this.words.show(parts.filter((part) => !approvals.includes(part)));
    this.#find("approvals").replaceChildren(...approvals.map(({ data }) => approvalOf(data)));
  }

  setStatus(...text) {
    this.#find("status").replaceChildren(...text);
  }

  // Show the time since the question was asked, until `stop`.
  start() {
    this.element.ariaBusy = "true";
    this.state = "";
    if (!this.taskId) this.setStatus("Asking…");
    this.#find("failure").textContent = "";
    this.#explain([]);
    this.#begun ||= performance.now();
    clearInterval(this.#timer);
    this.#timer = setInterval(() => (this.#find("elapsed").textContent = `${Math.round(this.#seconds())} s`), EVERY_MS);
  }

  stop() {
    this.element.ariaBusy = "false";
    clearInterval(this.#timer);
    this.#find("elapsed").textContent = "";
    for (const view of [this.reply, this.words, this.artifacts]) view.finish();
  }

  // Show that the hub refused the question; the hub sent nothing to the agent.
  refuse(error) {
    this.state = "";
    this.setStatus("Not asked.");
    this.#find("failure").textContent = error.message;
    this.#explain(explainError(error));
  }

  leave(why, advice) {
    this.setStatus(why);
    this.#explain([advice]);
  }

  // Show these actions and no others, by their `data-do`.
  offer(...names) {
    for (const button of this.element.querySelectorAll("[data-do]")) button.hidden = !names.includes(button.dataset.do);
    const happened = this.#find("happened");
    happened.hidden = !(this.isEnded && this.taskId);
    if (!happened.hidden) happened.href = inHub(`/questions/${encodeURIComponent(this.taskId)}`);
  }

  setRaw(isRaw) {
    for (const view of [this.reply, this.words, this.artifacts]) view.setRaw(isRaw);
  }

  #find(name) {
    return this.element.querySelector(`[data-part="${name}"]`);
  }

  #seconds() {
    return Math.max(0.1, (performance.now() - this.#begun) / 1000);
  }

  #seeReply(id, parts, appends) {
    if (this.#replies.get(id) === null) return; // a reply of an earlier turn
    this.replyIds.add(id);
    this.#replies.set(id, appends ? [...(this.#replies.get(id) ?? []), ...parts] : parts);
    this.reply.show(this.#replies.get(id));
  }

  #seeState(state, message, at) {
    const isBefore = ["SUBMITTED", "WORKING"].includes(state);
    this.state = state;
    this.isTaken ||= isBefore;
    this.#find("failure").textContent = "";
    this.#find("approvals").replaceChildren();
    if (isBefore) {
      this.note(message?.messageId, textOf(message));
      return this.setStatus(textOf(message) || STATES[state]);
    }
    this.stop();
    if (state === "COMPLETED") {
      if (!this.reply.text) this.reply.show(message?.parts ?? []);
      return this.#begun ? this.setStatus(`Answered in ${inSeconds(this.#seconds())}.`) : this.setStatus("Answered ", timeOf(at));
    }
    if (!ASKS.has(state)) return this.#seeEnd(state, textOf(message));
    this.setStatus(ENDS[state]);
    this.ask(message);
  }

  // Show an end without an answer. For an end that is no fault the hub's text is shown only if it has numbers: the
  // explanation says the rest.
  #seeEnd(state, text) {
    const end = explainEnd(text, { wasSent: this.isTaken });
    this.setStatus(end ? `${end.label[0].toUpperCase()}${end.label.slice(1)}.` : (ENDS[state] ?? "Not answered."));
    const failure = this.#find("failure");
    failure.textContent = end && !end.isFault && !end.hasNumber ? "" : text;
    failure.classList.toggle("calm", end ? !end.isFault : state !== "FAILED");
    if (end) this.#explain([end.caller, this.#begun ? end.counted : "", end.advice]); // "today's budget" is right only for a question asked on this page
  }

  #explain(lines) {
    this.#find("explained").textContent = lines.filter(Boolean).join(" ");
  }
}

// True for the text that the caller typed; other parts are files and data.
const isWritten = ({ text, filename }) => text !== undefined && !filename;

const inSeconds = (count) => (count < 100 ? `${count.toFixed(1)} s` : `${Math.floor(count / 60)} min ${Math.round(count % 60)} s`);

// A `<time>`, which `times.js` shows in the visitor's time zone.
function timeOf(at = "") {
  const time = make("time", "", at);
  Object.assign(time, { dateTime: at, title: at });
  time.dataset.form = "minute";
  return time;
}

function approvalOf({ requestId, tool, description, options = [] }) {
  const buttons = options.filter((option) => ["approve", "deny"].includes(option)).map((option) => {
    const button = make("button", option === "approve" ? "" : "quiet", option === "approve" ? "Approve" : "Deny");
    Object.assign(button, { type: "button", ariaLabel: `${button.textContent} ${tool}` });
    Object.assign(button.dataset, { decision: option, request: requestId });
    return button;
  });
  return make("div", "approval", make("b", "", make("bdi", "", tool)), make("pre", "said", description ?? ""), make("p", "choices", ...buttons));
}
