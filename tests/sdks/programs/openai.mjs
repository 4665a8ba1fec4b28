// What the official JavaScript client of OpenAI sees. Read from standard input, in its environment's folder:
// `node --input-type=module - URL TOKEN MODEL <openai.mjs`. Prints one JSON object at its end.

import OpenAI from "openai";

const [baseURL, apiKey, model] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0 });
const messages = [{ role: "user", content: "hello" }];
const seen = {};

seen.answer = await client.chat.completions.create({ model, messages });

seen.chunks = [];
for await (const chunk of await client.chat.completions.create({ model, messages, stream: true })) {
  seen.chunks.push(chunk);
}

seen.models = [];
for await (const one of client.models.list()) seen.models.push(one.id);
seen.model = await client.models.retrieve(model);

seen.response = await client.responses.create({ model, input: "hello" });
const events = await client.responses.create({
  model, input: "again", previous_response_id: seen.response.id, stream: true,
});
for await (const event of events) seen.last = event;

try {
  await client.chat.completions.create({ model: `${model}-absent`, messages });
} catch (error) {
  seen.error = { name: error.constructor.name, status: error.status, code: error.code };
}
console.log(JSON.stringify(seen));
