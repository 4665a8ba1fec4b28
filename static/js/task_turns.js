// The turns of a stored task of A2A 1.0: its history has the messages of the caller and the agent in order.
import { textOf } from "./a2a.js";
import { isReply, sightOf } from "./dialects.js";

// Show a task by `addTurn(parts, before)`; returns the task's last turn.
export function readTask(task, addTurn) {
  const { history = [], artifacts = [] } = task;
  const turns = [];
  history.forEach((message, index) => {
    const isCallers = message.role === "ROLE_USER";
    const verdict = message.parts.find(({ data }) => data?.decision)?.data.decision;
    const last = turns.at(-1);
    if (isCallers && !verdict) turns.push(addTurn(message.parts, last));
    else if (verdict) last?.note(message.messageId, `You: ${verdict}`);
    else if (history[index + 1]?.role === "ROLE_USER" && !isVerdict(history[index + 1])) last?.see({ state: "INPUT_REQUIRED", message });
    else last?.note(message.messageId, textOf(message));
    if (isCallers && !verdict) turns.at(-1).see({ taskId: task.id, artifacts: artifacts.filter(({ artifactId }) => artifactId === `reply-${turns.length}`) });
  });
  const last = turns.at(-1) ?? addTurn([]);
  last.see({ ...sightOf(task), artifacts: artifacts.filter((one) => !isReply(one.artifactId)) });
  return last;
}

const isVerdict = ({ parts }) => parts.some(({ data }) => data?.decision);
