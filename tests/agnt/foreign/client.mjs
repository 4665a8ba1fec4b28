// A client of AGNT. Each line of its input is an envelope's `intent`, `payload`, and what differs from the usual:
// `timestamp`, `ttl_ms`, `to`, `tampered`. It prints a line for each answer, and the rules that the answer breaks.
import { createInterface } from "node:readline";
import { PROTOCOL, readSecret, signPayload } from "./agnt.mjs";

const { AGNT_URL, AGNT_KEY, AGNT_SENDER = "node_client_1" } = process.env;
const secret = readSecret(process.env.AGNT_SECRET);
const NETWORK = "network:agnt";

for await (const line of createInterface({ input: process.stdin })) {
  const { tampered = {}, payload = {}, ...fields } = JSON.parse(line);
  const envelope = {
    protocol: PROTOCOL,
    from: AGNT_SENDER,
    to: NETWORK,
    agent_context: { correlation_id: "abc-123" },
    ttl_ms: 5000,
    timestamp: new Date().toISOString(),
    ...fields,
    payload: { ...signPayload(payload, secret, AGNT_SENDER), ...tampered },
  };
  const response = await fetch(AGNT_URL, {
    method: "POST",
    headers: { authorization: `Bearer ${AGNT_KEY}`, "content-type": "application/json" },
    body: JSON.stringify(envelope),
  });
  const answer = await response.json();
  const result = {
    status: response.status,
    error: response.headers.get("x-a2a-error"),
    isReplay: response.headers.get("idempotent-replay") === "true",
    payload: answer.payload,
    broken: brokenRules(envelope, answer, response),
  };
  process.stdout.write(`${JSON.stringify(result)}\n`);
}

function brokenRules(envelope, answer, response) {
  const { code } = answer.payload.error ?? {};
  const rules = {
    "from and to are swapped": answer.from === envelope.to && answer.to === envelope.from,
    "intent, protocol and context are repeated":
      answer.intent === envelope.intent &&
      answer.protocol === PROTOCOL &&
      JSON.stringify(answer.agent_context) === JSON.stringify(envelope.agent_context),
    "ttl_ms is what remains": answer.ttl_ms >= 0 && answer.ttl_ms <= envelope.ttl_ms,
    "the error is in the header, too": (response.headers.get("x-a2a-error") ?? undefined) === code,
    "an error has status error": (answer.payload.status === "error") === (code !== undefined),
    "the quota is in the headers": response.headers.has("x-ratelimit-remaining"),
  };
  return Object.keys(rules).filter((name) => !rules[name]);
}
