// Adds up the events of streams as the official JavaScript server of A2A 1.0 does: JSON as its argument, JSON out.
//
// In: a list of {frames: [StreamResponse…], task: Task}. Out: for each the task that the frames make, and the given,
// both as this SDK writes them. What a state says is in the history of this SDK at once, in that of the Python SDK once
// the next state comes: it is left out of both.

import { StreamResponse, Task } from "@a2a-js/sdk";
import { InMemoryTaskStore, ResultManager, ServerCallContext } from "@a2a-js/sdk/server";

async function addedUp(frames) {
  const manager = new ResultManager(new InMemoryTaskStore(), new ServerCallContext());
  for (const frame of frames) {
    const { $case: kind, value: data } = StreamResponse.fromJSON(frame).payload;
    await manager.processEvent({ kind, data });
  }
  return manager.getCurrentTask();
}

function shown(task) {
  const said = task.status.message?.messageId;
  return Task.toJSON({ ...task, history: task.history.filter((one) => one.messageId !== said) });
}

const seen = [];
for (const { frames, task } of JSON.parse(process.argv[2])) {
  seen.push([shown(await addedUp(frames)), shown(Task.fromJSON(task))]);
}
console.log(JSON.stringify(seen));
