// Requests that are wrong on purpose, one for each way in which a request can be: a name, and what it does to a sound one.
import { call } from "./a2a.js";

export const MISTAKES = {
  token: ["no token (-32010)", (request) => ({ ...request, credentials: "omit" })],
  agent: ["an agent that is not there (-32012)", (request) => ({ ...request, url: `${request.url}-nobody` })],
  type: ["another Content-Type (-32005)", (request) => ({ ...request, headers: { "Content-Type": "text/plain" } })],
  version: ["A2A-Version: 9.0 (-32009)", (request) => ({ ...request, headers: { ...request.headers, "A2A-Version": "9.0" } })],
  json: ["a body that is not JSON (-32700)", (request) => ({ ...request, body: request.body.slice(0, -1) })],
  id: ["a request without an id (-32600)", (request) => changed(request, (body) => delete body.id)],
  method: ["CancelTask (-32601)", (request) => changed(request, (body) => (body.method = "CancelTask"))],
  params: ["a message without text (-32602)", (request) => changed(request, (body) => (body.params.message.parts = []))],
  task: ["GetTask of a task that is not there (-32001)", (request, handle) => call(handle, "GetTask", { id: "task-nowhere" })],
};

function changed(request, change) {
  const body = JSON.parse(request.body);
  change(body);
  return { ...request, body: JSON.stringify(body, null, 2) };
}
