// A venue of AGNT that listens itself. It checks each signature, does what the guest's note says, and prints each
// envelope that came. First it prints its port.
import { createServer } from "node:http";
import { setTimeout as wait } from "node:timers/promises";
import { readSecret, verifyPayload } from "./agnt.mjs";

const secret = readSecret(process.env.AGNT_SECRET);

const answers = {
  "is free": () => ({ status: "confirmed", slot_time: "20:00", note: "upstairs", booking_id: "T-104" }),
  "is full": () => ({ status: "slot_unavailable", reason: "full until ten" }),
  declines: () => ({ status: "declined", reason: "at most eight at a table" }),
  "takes no orders now": () => ({ status: "rate_limited", retry_after_s: 90 }),
  "answers nonsense": () => ({ status: "perhaps" }),
};

async function serve(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const envelope = JSON.parse(Buffer.concat(chunks).toString("utf8"));
  const note = envelope.payload.user_note ?? "";
  const isSigned = verifyPayload(envelope.payload, secret, envelope.from);
  process.stdout.write(`${JSON.stringify({ isSigned, envelope })}\n`);
  if (!isSigned) return respond(response, envelope, 401, errorOf("invalid_signature"));
  if (note === "hangs up") return request.socket.destroy();
  if (note === "fails") return respond(response, envelope, 500, errorOf("internal_error"));
  if (note === "sends no JSON") return response.writeHead(200, { "content-type": "application/json" }).end("<html>");
  if (envelope.intent === "booking.cancel") return respond(response, envelope, 200, { status: "cancelled" });
  if (note.startsWith("waits ")) await wait(Number(note.split(" ")[1]));
  return respond(response, envelope, 200, (answers[note] ?? answers["is free"])(envelope));
}

function errorOf(code) {
  return { status: "error", error: { code, message: `the venue says ${code}`, retryable: false } };
}

function respond(response, envelope, status, payload) {
  const body = { ...envelope, from: envelope.to, to: envelope.from, payload, timestamp: new Date().toISOString() };
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

const server = createServer((request, response) => void serve(request, response));
server.listen(Number(process.env.PORT), "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
