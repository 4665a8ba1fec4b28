// A2A from a page of the hub: the cookie says who asks. Texts of agents are data: show them by textContent.

export const ENDED = new Set(["COMPLETED", "FAILED", "CANCELED", "REJECTED"]);
export const ASKS = new Set(["INPUT_REQUIRED", "AUTH_REQUIRED"]);

// The request that asks an agent: {method, url, headers, body}, as `exchange` sends it.
export function question(handle, text, { streaming = true, messageId = crypto.randomUUID() } = {}) {
  const method = streaming ? "SendStreamingMessage" : "SendMessage";
  return call(handle, method, { message: { messageId, role: "ROLE_USER", parts: [{ text }] } });
}

// The request that answers what a task's agent asked. Only newer dialects go on with a task: see `likeOurs`.
export function answerTo(handle, text, taskId) {
  const message = { messageId: crypto.randomUUID(), taskId, role: "ROLE_USER", parts: [{ text }] };
  return call(handle, "SendMessage", { message }, "1.0");
}

// `version`: the A2A-Version to send, if any.
export function call(handle, method, params, version = "") {
  const body = JSON.stringify({ jsonrpc: "2.0", method, params, id: "1" }, null, 2);
  const headers = { "Content-Type": "application/json", ...(version && { "A2A-Version": version }) };
  return { method: "POST", url: endpoint(handle), headers, body };
}

export function endpoint(handle) {
  const [owner, slug] = handle.split("/");
  return `/api/a2a/v1/agents/${encodeURIComponent(owner)}/${encodeURIComponent(slug)}`;
}

// Send a request and follow its answer. `onHead(response)` once, `onPiece(text)` for each event or the whole body as it
// came, `onShown(result, id)` for what each shows (`id`: of an event that has one), `onTask(task)` for each task of the hub's
// own dialect, `onError({code, message, status})` for an error instead.
export async function exchange(request, { onHead, onPiece, onShown, onTask, onError, signal } = {}) {
  const { url, method, headers, body, credentials = "same-origin" } = request;
  const response = await fetch(url, { method, headers, body, credentials, signal });
  const read = (answer, id) => {
    if (answer?.error) return onError?.(problem(answer, response.status));
    const shown = answer?.jsonrpc ? answer.result : answer;
    onShown?.(shown, id);
    onTask?.(shown.task ?? shown);
  };
  onHead?.(response);
  if ((response.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) {
    for await (const { id, data } of events(response.body)) {
      onPiece?.(`${id && `id: ${id}\n`}data: ${data}`);
      read(JSON.parse(data), id);
    }
    return;
  }
  const text = (await response.text()).trimStart();
  onPiece?.(text);
  const answer = parsed(text);
  if (answer?.error || (answer && response.ok)) read(answer, "");
  else onError?.({ code: null, message: `HTTP ${response.status}`, status: response.status });
}

// Ask, and give the task at its end; `onChunk(text)` for each piece of the reply on the way. Throws an Error with `code`.
export async function ask(handle, text, { onTask, onChunk, signal } = {}) {
  let last;
  await exchange(question(handle, text), {
    signal,
    onTask(task) {
      last = task;
      if (isChunk(task)) onChunk?.(textOf(task.status.message));
      onTask?.(task);
    },
    onError({ code, message }) {
      throw Object.assign(new Error(message), { code });
    },
  });
  return last;
}

// A piece of the reply; what else a task at work says is a note on how far it is. The pieces share one messageId.
export const isChunk = (task) => hasWords(task) && task.status.message.messageId === `msg-${task.id.slice("task-".length)}`;
export const isNote = (task) => hasWords(task) && !isChunk(task);
const hasWords = (task) => task.status.state === "WORKING" && Boolean(task.status.message);

// A task of A2A 1.0 as the hub's own dialect shows it; one of its own stays as it is.
export function likeOurs(task) {
  if (!task.status.state.startsWith("TASK_STATE_")) return task;
  const reply = (task.artifacts ?? []).findLast(({ artifactId }) => artifactId.startsWith("reply-"));
  const status = { ...task.status, state: task.status.state.slice("TASK_STATE_".length) };
  return { ...task, status, history: [...(task.history ?? []), { role: "ROLE_AGENT", parts: reply?.parts ?? [] }] };
}

// What a finished task says: the reply, or why there is none.
export const outcomeOf = (task) =>
  textOf(task.status.state === "COMPLETED" ? task.history.at(-1) : task.status.message);

export const textOf = (message) => (message?.parts ?? []).map((part) => part.text ?? "").join("");

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const pieces = (rest + value).split("\n\n");
    rest = pieces.pop();
    for (const piece of pieces) {
      const [id, data] = ["id: ", "data: "].map((name) => valueOf(piece, name));
      if (data) yield { id, data };
    }
  }
}

function valueOf(event, name) {
  const lines = event.split("\n").filter((line) => line.startsWith(name));
  return lines.map((line) => line.slice(name.length)).join("\n");
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// JSON-RPC says {error: {code, message}}, the native API {error: code, message}.
function problem({ error, message }, status) {
  return typeof error === "object" ? { ...error, status } : { code: error, message, status };
}
