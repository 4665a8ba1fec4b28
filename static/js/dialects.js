// Requests in each dialect of the hub, and what its answers say whichever dialect they are in.
// A dialect is {key, title, version, methods: {what it does: name}, message: one to fill in}, as the page has them.
import { call, textOf } from "./a2a.js";

// A message: `how` is "stream", "send", or "begin" (answered as the task begins). `taskId`: the task that asked for it.
export function asking(dialect, handle, text, { how, messageId, taskId = "" }) {
  const [part] = dialect.message.parts;
  const message = { ...dialect.message, messageId, parts: [{ ...part, text }], ...(taskId && { taskId }) };
  const configuration = part.kind ? { blocking: false } : { returnImmediately: true };
  const method = dialect.methods[how === "stream" ? "stream" : "send"];
  return call(handle, method, how === "begin" ? { message, configuration } : { message }, dialect.version);
}

// A question about a task: `operation` is "get", "cancel" or "subscribe". `seen`: the id of the last event that came.
export function about(dialect, handle, operation, taskId, seen = "") {
  const request = call(handle, dialect.methods[operation], { id: taskId }, dialect.version);
  return seen ? { ...request, headers: { ...request.headers, "Last-Event-ID": seen } } : request;
}

// What a result or frame shows: {taskId, contextId, state, at, message, artifacts, appends}, each only where it is said.
// States are bare and in capitals, as in COMPLETED; `artifacts` are whole unless it `appends`.
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

// The hub's own dialect has tasks only: a piece of the reply is one at work, the whole reply its last message.
function sightOfHub(task) {
  const { state, message } = task.status;
  const replyIs = ({ parts }) => [{ artifactId: "reply-1", parts }];
  if (isChunk(task)) return { taskId: task.id, artifacts: replyIs(message), appends: true };
  return { taskId: task.id, state, message, artifacts: state === "COMPLETED" ? replyIs(task.history.at(-1)) : [] };
}

// The pieces of a reply share one messageId; what else a task at work says is a note on its progress.
const isChunk = ({ id, status: { state, message } }) => state === "WORKING" && message?.messageId === `msg-${id.slice("task-".length)}`;

// The text of a reply as it comes, from any dialect's sights.
export class Reply {
  #texts = new Map();

  see({ artifacts = [], appends = false }) {
    for (const one of artifacts) {
      const before = appends ? (this.#texts.get(one.artifactId) ?? "") : "";
      this.#texts.set(one.artifactId, before + textOf(one));
    }
  }

  // Write what a sight added into an element; a piece is appended, so that readers hear it alone.
  write(element, { artifacts: [artifact], appends }) {
    if (appends && isReply(artifact.artifactId)) element.append(textOf(artifact));
    else element.textContent = this.text;
  }

  // The last reply's; of an agent that made other things only, theirs.
  get text() {
    return this.replyText ?? [...this.#texts.values()].join("\n");
  }

  // The last reply's, if there is one.
  get replyText() {
    return [...this.#texts].findLast(([id]) => isReply(id))?.[1];
  }
}

export const isReply = (artifactId) => /^(reply-|assistant-output-)\d+$/.test(artifactId);

const bare = (state) => String(state).replace("TASK_STATE_", "").toUpperCase().replaceAll("-", "_");
