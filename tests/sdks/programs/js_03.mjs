// What the official JavaScript client of A2A 0.3 sees. Read from standard input, in its environment's folder:
// `node --input-type=module - URL TOKEN SCENARIO OPTIONS <js_03.mjs`. URL is the agent's base address, OPTIONS a
// JSON object. Prints a JSON line for each thing seen: {"step": what was done, "value": what came}.

import { randomUUID } from "node:crypto";
import {
  ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory,
  createAuthenticatingFetchWithRetry,
} from "@a2a-js/sdk/client";

const [url, token, scenario] = process.argv.slice(2);
const options = JSON.parse(process.argv[5]);
const UNKNOWN = randomUUID();
const ENDED = ["completed", "failed", "canceled", "rejected"];

const say = (step, value) => console.log(JSON.stringify({ step, value }));
const sayRaised = (error) =>
  say("raised", { type: error.constructor.name, message: error.message, code: error.code ?? null });

async function attempt(work) {
  try {
    await work;
    say("not raised", null);
  } catch (error) {
    sayRaised(error);
  }
}

async function connect() {
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => ({ Authorization: `Bearer ${token}` }),
    shouldRetryWithHeaders: async () => undefined,
  });
  const transports = [new JsonRpcTransportFactory({ fetchImpl })];
  const settings = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports });
  return new ClientFactory(settings).createFromUrl(url, options.path);
}

function ask(text, message = {}, configuration = undefined) {
  const files = (options.files ?? []).map((file) => ({ kind: "file", file }));
  const parts = [{ kind: "text", text: text ?? options.text ?? "hello" }, ...files];
  return { message: { kind: "message", messageId: randomUUID(), role: "user", parts, ...message }, configuration };
}

async function askAndWait(client, request) {
  const answer = await client.sendMessage(request);
  say("answer", answer);
  return answer;
}

async function sayAll(events, step = "event") {
  for await (const event of events) say(step, event);
}

const isNote = ({ kind, status }) => kind === "status-update" && status.state === "working" && status.message;

const scenarios = {
  async card() {
    const client = await connect();
    say("card", await client.getAgentCard());
    say("transport", client.transport.constructor.name);
  },

  async send() {
    await askAndWait(await connect(), ask());
  },

  async stream() {
    await sayAll((await connect()).sendMessageStream(ask()));
  },

  async poll() {
    const client = await connect();
    let task = await askAndWait(client, ask(undefined, {}, { blocking: false }));
    while (!ENDED.includes(task.status.state)) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      task = await client.getTask({ id: task.id });
    }
    say("task", task);
  },

  async get() {
    const client = await connect();
    const { id } = await askAndWait(client, ask());
    say("task", await client.getTask({ id, historyLength: 10 }));
    say("brief", await client.getTask({ id, historyLength: 1 }));
    await attempt(client.getTask({ id: UNKNOWN }));
  },

  async cancel() {
    const client = await connect();
    let id;
    for await (const event of client.sendMessageStream(ask())) {
      say("event", event);
      if (isNote(event)) {
        id = event.taskId;
        say("canceled", await client.cancelTask({ id }));
      }
    }
    await attempt(client.cancelTask({ id }));
  },

  async subscribe() {
    const client = await connect();
    let id;
    for await (const event of client.sendMessageStream(ask())) {
      say("event", event);
      id = event.taskId;
      if (isNote(event)) break;
    }
    await sayAll(client.resubscribeTask({ id }), "again");
    await attempt(sayAll(client.resubscribeTask({ id }), "late"));
  },

  async follow_up() {
    const client = await connect();
    const { id, contextId } = await askAndWait(client, ask());
    await askAndWait(client, ask(options.more, { taskId: id, contextId }));
    await attempt(askAndWait(client, ask("again", { taskId: id })));
  },

  async follow_up_by_stream() {
    const client = await connect();
    let taskId;
    for await (const event of client.sendMessageStream(ask())) {
      say("event", event);
      taskId ??= event.id;
    }
    await sayAll(client.sendMessageStream(ask(options.more, { taskId })), "again");
  },

  async push() {
    const client = await connect();
    const pushNotificationConfig = { url: options.hook, token: "t0ken" };
    await attempt(client.setTaskPushNotificationConfig({ taskId: UNKNOWN, pushNotificationConfig }));
  },
};

try {
  await scenarios[scenario]();
} catch (error) {
  sayRaised(error);
}
say("end", null);
