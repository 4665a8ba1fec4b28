// Calls A2A from a page of the hub, signed in by the cookie. Texts of agents are untrusted: show them by textContent.
import { inHub } from "./addresses.js";

export const ENDED = new Set(["COMPLETED", "FAILED", "CANCELED", "REJECTED"]);
export const ASKS = new Set(["INPUT_REQUIRED", "AUTH_REQUIRED"]);

// A request: {method, url, headers, body}, as `exchange` sends it. `version`: the A2A-Version to send, if any.
export function call(handle, method, params, version = "") {
  const body = JSON.stringify({ jsonrpc: "2.0", method, params, id: "1" }, null, 2);
  const headers = { "Content-Type": "application/json", ...(version && { "A2A-Version": version }) };
  return { method: "POST", url: endpoint(handle), headers, body };
}

// A new id. `crypto.randomUUID` does not exist on pages of plain http, except on localhost.
export function newMessageId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function endpoint(handle) {
  const [owner, slug] = handle.split("/");
  return `/api/a2a/v1/agents/${encodeURIComponent(owner)}/${encodeURIComponent(slug)}`;
}

// Send a request and read the response to its end. Calls `onHead(response)` once; `onPiece(text)` with the text of each
// event, or of the whole body; `onShown(result, id)` with each result (`id`: the id of the event, if it has one);
// `onError({code, message, status})` with an error.
export async function exchange(request, { onHead, onPiece, onShown, onError, signal } = {}) {
  const { url, method, headers, body, credentials = "same-origin" } = request;
  const response = await fetch(inHub(url), { method, headers, body, credentials, signal });
  const read = (answer, id) => {
    if (answer?.error) return onError?.(problem(answer, response.status));
    onShown?.(answer?.jsonrpc ? answer.result : answer, id);
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

// An error of JSON-RPC is {error: {code, message}}, an error of the native API {error: code, message}.
function problem({ error, message }, status) {
  return typeof error === "object" ? { ...error, status } : { code: error, message, status };
}
