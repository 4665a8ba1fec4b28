// Makes requests in each A2A dialect of the hub, and reads the answers of all dialects into one form.
// A dialect is {key, title, version, methods: {operation: method name}, message: a template}, from the page's data.
import { call, textOf } from "./a2a.js";

// The request that sends a message. `how`: "stream", "send", or "begin" (the hub answers when the task has started).
// `taskId`: the task that waits for the message as its input.
export function asking(dialect, handle, text, { how, messageId, taskId = "" }) {
  const [part] = dialect.message.parts;
  const message = { ...dialect.message, messageId, parts: [{ ...part, text }], ...(taskId && { taskId }) };
  const configuration = part.kind ? { blocking: false } : { returnImmediately: true };
  const method = dialect.methods[how === "stream" ? "stream" : "send"];
  return call(handle, method, how === "begin" ? { message, configuration } : { message }, dialect.version);
}

// The request about a task: `operation` is "get", "cancel" or "subscribe". `seen`: the id of the last received event.
export function about(dialect, handle, operation, taskId, seen = "") {
  const request = call(handle, dialect.methods[operation], { id: taskId }, dialect.version);
  return seen ? { ...request, headers: { ...request.headers, "Last-Event-ID": seen } } : request;
}

// A result or event as {taskId, contextId, state, at, message, artifacts, appends}; fields that it lacks are undefined.
// States are in capitals without a prefix, such as COMPLETED. `appends`: the parts extend the artifact received before.
export function sightOf(shown) {
  const told = shown?.task ?? shown?.statusUpdate ?? shown?.artifactUpdate ?? shown?.message ?? shown ?? {};
  if (told.artifact) return { taskId: told.taskId, artifacts: [told.artifact], appends: Boolean(told.append) };
  if (told.parts) return { taskId: told.taskId, contextId: told.contextId, message: told, state: "COMPLETED" };
  if (!told.status) return {};
  const { state, message, timestamp } = told.status;
  if (told.id && state === bare(state)) return sightOfHub(told);
  const { taskId = told.id, contextId, artifacts } = told;
  return { taskId, contextId, state: bare(state), at: timestamp, message, artifacts };
}

// The hub's own dialect sends only tasks: a WORKING task carries a piece of the reply; the last message of a COMPLETED
// task is the whole reply.
function sightOfHub(task) {
  const { state, message } = task.status;
  const replyIs = ({ parts }) => [{ artifactId: "reply-1", parts }];
  if (isChunk(task)) return { taskId: task.id, artifacts: replyIs(message), appends: true };
  return { taskId: task.id, state, message, artifacts: state === "COMPLETED" ? replyIs(task.history.at(-1)) : [] };
}

// The pieces of a reply share one messageId; other messages of a WORKING task are notes on its progress.
const isChunk = ({ id, status: { state, message } }) => state === "WORKING" && message?.messageId === `msg-${id.slice("task-".length)}`;

// Collects the text of a reply from the results of `sightOf`.
export class Reply {
  #texts = new Map();

  see({ artifacts = [], appends = false }) {
    for (const one of artifacts) {
      const before = appends ? (this.#texts.get(one.artifactId) ?? "") : "";
      this.#texts.set(one.artifactId, before + textOf(one));
    }
  }

  // Write the newest text into an element; a piece is appended, so that screen readers announce only the piece.
  write(element, { artifacts: [artifact], appends }) {
    if (appends && isReply(artifact.artifactId)) element.append(textOf(artifact));
    else element.textContent = this.text;
  }

  // The text of the last reply; without a reply, the texts of the other artifacts.
  get text() {
    return this.replyText ?? [...this.#texts.values()].join("\n");
  }

  // The text of the last reply, or undefined.
  get replyText() {
    return [...this.#texts].findLast(([id]) => isReply(id))?.[1];
  }
}

export const isReply = (artifactId) => /^(reply-|assistant-output-)\d+$/.test(artifactId);

const bare = (state) => String(state).replace("TASK_STATE_", "").toUpperCase().replaceAll("-", "_");
