// What the official JavaScript client of A2A 1.0 sees, in scenarios. The text of `output.mjs` stands before it.

import { randomUUID } from "node:crypto";
import {
  AgentCard, ListTaskPushNotificationConfigsResponse, ListTasksRequest, ListTasksResponse, Message,
  SendMessageRequest, StreamResponse, Task, TaskPushNotificationConfig, TaskState,
} from "@a2a-js/sdk";
import {
  ClientFactory, ClientFactoryOptions, JsonRpcTransportFactory, RestTransportFactory,
  createAuthenticatingFetchWithRetry,
} from "@a2a-js/sdk/client";

const UNKNOWN = randomUUID();
const ENDED = ["COMPLETED", "FAILED", "CANCELED", "REJECTED"].map((state) => TaskState[`TASK_STATE_${state}`]);

async function connect() {
  const { url, token, options } = given();
  const fetchImpl = createAuthenticatingFetchWithRetry(fetch, {
    headers: async () => ({ Authorization: `Bearer ${token}` }),
    shouldRetryWithHeaders: async () => undefined,
  });
  const transports = [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })];
  const preferredTransports = options.binding ? [options.binding] : undefined;
  const ours = { transports, preferredTransports };
  const factory = new ClientFactory(ClientFactoryOptions.createFrom(ClientFactoryOptions.default, ours));
  return factory.createFromUrl(url, options.path);
}

// The docs build requests from plain objects; fromJSON fills in what is left out.
function ask(text, message = {}, configuration = {}) {
  const parts = [{ text: text ?? given().options.text ?? "hello" }];
  return SendMessageRequest.fromJSON({
    message: { messageId: randomUUID(), role: "ROLE_USER", parts, ...message },
    configuration,
  });
}

async function askAndWait(client, request) {
  const answer = await client.sendMessage(request);
  const isTask = answer.status !== undefined;
  say("answer", isTask ? { task: Task.toJSON(answer) } : { message: Message.toJSON(answer) });
  return answer;
}

async function sayAll(events, step = "event") {
  for await (const event of events) say(step, StreamResponse.toJSON(event));
}

// The id of the task whose agent has said what it is doing.
function noted({ payload: { $case, value } }) {
  const isAtWork = $case === "statusUpdate" && value.status.state === TaskState.TASK_STATE_WORKING;
  return isAtWork && value.status.message ? value.taskId : undefined;
}

const scenarios = {
  async card() {
    const client = await connect();
    say("card", AgentCard.toJSON(client.agentCard));
    say("transport", client.transport.protocolName);
  },

  async send() {
    await askAndWait(await connect(), ask());
  },

  async stream() {
    await sayAll((await connect()).sendMessageStream(ask()));
  },

  async poll() {
    const client = await connect();
    let task = await askAndWait(client, ask(undefined, {}, { returnImmediately: true }));
    while (!ENDED.includes(task.status.state)) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      task = await client.getTask({ id: task.id });
    }
    say("task", Task.toJSON(task));
  },

  async get() {
    const client = await connect();
    const { id } = await askAndWait(client, ask());
    say("task", Task.toJSON(await client.getTask({ id })));
    say("brief", Task.toJSON(await client.getTask({ id, historyLength: 1 })));
    await attempt(client.getTask({ id: UNKNOWN }));
  },

  async cancel() {
    const client = await connect();
    let id;
    for await (const event of client.sendMessageStream(ask())) {
      say("event", StreamResponse.toJSON(event));
      if (noted(event)) {
        id = noted(event);
        say("canceled", Task.toJSON(await client.cancelTask({ id })));
      }
    }
    await attempt(client.cancelTask({ id }));
  },

  async subscribe() {
    const client = await connect();
    let id;
    for await (const event of client.sendMessageStream(ask())) {
      say("event", StreamResponse.toJSON(event));
      id = noted(event);
      if (id) break;
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
      say("event", StreamResponse.toJSON(event));
      taskId ??= event.payload.value.id;
    }
    await sayAll(client.sendMessageStream(ask(given().options.more, { taskId })), "again");
  },

  async list_tasks() {
    const client = await connect();
    const { contextId } = await askAndWait(client, ask());
    await askAndWait(client, ask(undefined, { contextId }));
    let pageToken = "";
    for (const pageSize of [1, 1]) {
      const page = await client.listTasks(ListTasksRequest.fromJSON({ contextId, pageSize, pageToken }));
      say("page", ListTasksResponse.toJSON(page));
      pageToken = page.nextPageToken;
    }
    const whole = { contextId, status: "TASK_STATE_COMPLETED", includeArtifacts: true };
    say("page", ListTasksResponse.toJSON(await client.listTasks(ListTasksRequest.fromJSON(whole))));
    await attempt(client.listTasks(ListTasksRequest.fromJSON({ pageToken: "nonsense" })));
  },

  async push() {
    const client = await connect();
    const { id: taskId } = await askAndWait(client, ask());
    const made = await client.createTaskPushNotificationConfig({ taskId, url: given().options.hook, token: "t0ken" });
    say("created", TaskPushNotificationConfig.toJSON(made));
    const one = { taskId, id: made.id };
    say("got", TaskPushNotificationConfig.toJSON(await client.getTaskPushNotificationConfig(one)));
    const listed = async () =>
      ListTaskPushNotificationConfigsResponse.toJSON(await client.listTaskPushNotificationConfig({ taskId }));
    say("listed", await listed());
    await client.deleteTaskPushNotificationConfig(one);
    say("left", await listed());
    await attempt(client.getTaskPushNotificationConfig(one));
  },

  async extended_card() {
    say("card", AgentCard.toJSON(await (await connect()).getAgentCard()));
  },
};

serve(scenarios);
