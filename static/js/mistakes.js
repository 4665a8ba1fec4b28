// Deliberate mistakes in requests: each has a name, and a function that puts the mistake into a valid request.
import { about } from "./dialects.js";

export const MISTAKES = {
  token: ["no token (-32010)", (request) => ({ ...request, credentials: "omit" })],
  agent: ["an agent that is not there (-32012)", (request) => ({ ...request, url: `${request.url}-absent` })],
  type: ["another Content-Type (-32005)", (request) => headed(request, { "Content-Type": "text/plain" })],
  version: ["A2A-Version: 9.0 (-32009)", (request) => headed(request, { "A2A-Version": "9.0" })],
  json: ["a body that is not JSON (-32700)", (request) => ({ ...request, body: request.body.slice(0, -1) })],
  id: ["a request without an id (-32600)", (request) => changed(request, (body) => delete body.id)],
  method: ["a method that is not there (-32601)", (request, { dialect }) => changed(request, (body) => (body.method = unknown(dialect)))],
  params: ["a message without a role (-32602)", (request) => changed(request, (body) => delete body.params.message.role)],
  task: ["a task that is not there (-32001)", (_, { dialect, handle }) => about(dialect, handle, "get", "task-nowhere")],
};

const unknown = (dialect) => (dialect.methods.cancel ? "TellJoke" : "CancelTask");

function headed(request, headers) {
  return { ...request, headers: { ...request.headers, ...headers } };
}

function changed(request, change) {
  const body = JSON.parse(request.body);
  change(body);
  return { ...request, body: JSON.stringify(body, null, 2) };
}
