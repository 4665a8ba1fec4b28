// A2A from a page of the hub: the cookie says who asks. Texts of agents are data: show them by textContent.

export const TERMINAL = new Set(["COMPLETED", "FAILED"]);

// The request that asks an agent: {method, url, headers, body}, as `exchange` sends it.
export function question(handle, text, { streaming = true, messageId = crypto.randomUUID() } = {}) {
  const method = streaming ? "SendStreamingMessage" : "SendMessage";
  return call(handle, method, { message: { messageId, role: "ROLE_USER", parts: [{ text }] } });
}

export function call(handle, method, params) {
  const body = JSON.stringify({ jsonrpc: "2.0", method, params, id: "1" }, null, 2);
  return { method: "POST", url: endpoint(handle), headers: { "Content-Type": "application/json" }, body };
}

export function endpoint(handle) {
  const [owner, slug] = handle.split("/");
  return `/api/a2a/v1/agents/${encodeURIComponent(owner)}/${encodeURIComponent(slug)}`;
}

// Send a request and follow its answer. `onHead(response)` once, `onPiece(text)` for each event or the whole body as it
// came, `onTask(task)` for each task in it, `onError({code, message, status})` for an error instead.
export async function exchange(request, { onHead, onPiece, onTask, onError, signal } = {}) {
  const { url, ...options } = request;
  const response = await fetch(url, { credentials: "same-origin", ...options, signal });
  onHead?.(response);
  if ((response.headers.get("Content-Type") ?? "").startsWith("text/event-stream")) {
    for await (const data of events(response.body)) {
      onPiece?.(`data: ${data}`);
      onTask?.(JSON.parse(data).task);
    }
    return;
  }
  const text = (await response.text()).trimStart();
  onPiece?.(text);
  const answer = parsed(text);
  if (answer?.error) onError?.(problem(answer, response.status));
  else if (answer?.result) onTask?.(answer.result);
  else if (!response.ok) onError?.({ code: null, message: `HTTP ${response.status}`, status: response.status });
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

export const isChunk = (task) => task.status.state === "WORKING" && Boolean(task.status.message);

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
      const data = piece.split("\n").filter((line) => line.startsWith("data: ")).map((line) => line.slice(6)).join("\n");
      if (data) yield data;
    }
  }
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
