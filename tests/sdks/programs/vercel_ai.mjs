// What Vercel's `ai` makes of an answer and of an agent that fails; its own retries are on. Read from standard input,
// in its environment's folder: `node --input-type=module - URL TOKEN MODEL <vercel_ai.mjs`. Prints one JSON object.

import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText } from "ai";

const [baseURL, apiKey, model] = process.argv.slice(2);
const hub = createOpenAICompatible({ name: "hub", baseURL, apiKey });
const seen = {};

seen.answer = (await generateText({ model: hub(model), prompt: "say well" })).text;
try {
  await generateText({ model: hub(model), prompt: "fail no disk" });
} catch (error) {
  seen.error = { name: error.name, status: error.statusCode, message: error.message };
}
console.log(JSON.stringify(seen));
