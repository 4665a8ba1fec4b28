// Adds up the events of streams as the official JavaScript server of A2A 0.3 does: JSON as its argument, JSON out.
//
// In: a list of {frames: [Task or event…], task: Task}. Out: for each the task that the frames make, and the given.

import { InMemoryTaskStore, ResultManager } from "@a2a-js/sdk/server";

async function addedUp(frames) {
  const manager = new ResultManager(new InMemoryTaskStore());
  for (const frame of frames) await manager.processEvent(frame);
  return manager.getCurrentTask();
}

const seen = [];
for (const { frames, task } of JSON.parse(process.argv[2])) seen.push([await addedUp(frames), task]);
console.log(JSON.stringify(seen));
