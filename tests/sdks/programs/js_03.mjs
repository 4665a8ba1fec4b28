// What the official JavaScript client of A2A 0.3 sees, in scenarios. The text of `output.mjs` stands before it.

import { randomUUID } from "node:crypto";
import {
  ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory,
  createAuthenticatingFetchWithRetry,
} from "@a2a-js/sdk/client";

const UNKNOWN = randomUUID();
const ENDED = ["completed", "failed", "canceled", "rejected"];

async function connect() {
  const { url, token, options } = given();
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => ({ Authorization: `Bearer ${token}` }),
    shouldRetryWithHeaders: async () => undefined,
  });
  const transports = [new JsonRpcTransportFactory({ fetchImpl })];
  const settings = ClientFactoryOptions.createFrom(ClientFactoryOptions.default, { transports });
  return new ClientFactory(settings).createFromUrl(url, options.path);
}

function ask(text, message = {}, configuration = undefined) {
  const files = (given().options.files ?? []).map((file) => ({ kind: "file", file }));
  const parts = [{ kind: "text", text: text ?? given().options.text ?? "hello" }, ...files];
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
    await askAndWait(client, ask(given().options.more, { taskId: id, contextId }));
    await attempt(askAndWait(client, ask("again", { taskId: id })));
  },

  async follow_up_by_stream() {
    const client = await connect();
    let taskId;
    for await (const event of client.sendMessageStream(ask())) {
      say("event", event);
      taskId ??= event.id;
    }
    await sayAll(client.sendMessageStream(ask(given().options.more, { taskId })), "again");
  },

  async push() {
    const client = await connect();
    const pushNotificationConfig = { url: given().options.hook, token: "t0ken" };
    await attempt(client.setTaskPushNotificationConfig({ taskId: UNKNOWN, pushNotificationConfig }));
  },
};

serve(scenarios);
