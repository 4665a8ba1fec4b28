// How the programs of the JavaScript clients of A2A are asked and say what they saw. The text of a program follows
// this one, and node runs both by `--eval` in the folder of the client's environment, which the imports are found from.

import { AsyncLocalStorage } from "node:async_hooks";
import { createServer } from "node:net";
import { createInterface } from "node:readline";

const asked = new AsyncLocalStorage();

// What a scenario was asked with: `url`, the agent's base address, `token`, and `options`, an object.
const given = () => asked.getStore();

// One line, {"step": what was done, "value": what came}.
const say = (step, value) => given().socket.write(`${JSON.stringify({ step, value })}\n`);

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

// Run a scenario for each connection: its one line is the JSON list of URL, TOKEN, the scenario's name, OPTIONS as JSON.
// The argument is the file descriptor of a listening socket. The end of standard input ends the program.
function serve(scenarios) {
  const server = createServer((socket) => {
    socket.on("error", () => {}); // the test has left
    createInterface({ input: socket }).once("line", (line) => {
      const [url, token, name, options] = JSON.parse(line);
      asked.run({ socket, url, token, options: JSON.parse(options) }, async () => {
        try {
          await scenarios[name]();
        } catch (error) {
          sayRaised(error);
        }
        say("end", null);
        socket.end();
      });
    });
  });
  server.listen({ fd: Number(process.argv[1]) });
  process.stdin.on("end", () => process.exit()).resume();
}

