// The developer reference's "Try it". Everything an agent or owner wrote is shown by textContent.
import { call, endpoint, exchange, isChunk, outcomeOf, question, TERMINAL, textOf } from "./a2a.js";
import { MISTAKES } from "./mistakes.js";
import { asCurl, asHttp, asPython, asTypeScript } from "./snippets.js";
import { toast } from "./toast.js";

const FORMS = { http: asHttp, curl: asCurl, python: asPython, typescript: asTypeScript };
const MAX_RAW_CHARS = 200_000;
const start = JSON.parse(document.getElementById("start").textContent);
const $ = (id) => document.getElementById(id);
const state = { agents: start.agents, token: "", taskId: "", messageId: crypto.randomUUID(), reading: null, sent: null };

if ($("agent")) {
  for (const [key, [name]] of Object.entries(MISTAKES)) $("mistake").append(new Option(name, key));
  $("agent").addEventListener("change", pick);
  $("refresh")?.addEventListener("click", refresh);
  $("fetch-card").addEventListener("click", fetchCard);
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    send(planned());
    state.messageId = crypto.randomUUID();
  });
  $("ask").addEventListener("input", showRequest);
  $("get-task").addEventListener("click", () => send(call(handle(), "GetTask", { id: state.taskId })));
  $("stop").addEventListener("click", () => state.reading?.abort());
  $("mint")?.addEventListener("click", mint);
  pick();
}

function handle() {
  return $("agent").value;
}

// Step 1.

function pick() {
  const agent = state.agents.find((one) => one.handle === handle());
  const left = Math.max(0, agent.dailyBudgetQueries - agent.queriesToday);
  $("about-state").textContent = agent.online ? "online" : "offline";
  $("about-state").className = `state ${agent.online ? "on" : "off"}`;
  $("about-budget").textContent = `${left} of ${agent.dailyBudgetQueries} questions left today`;
  $("about-isolated").textContent = agent.isolated ? "isolated" : "may ask others";
  $("about-tagline").textContent = agent.tagline || agent.name;
  $("card-request").textContent = asHttp(cardRequest(), start.hub);
  $("card-answer").textContent = "";
  $("card-status").textContent = "";
  forget();
  showRequest();
}

async function refresh() {
  const answer = await fetch("/api/v1/agents?limit=200");
  if (!answer.ok) return toast(`The list did not come: HTTP ${answer.status}.`);
  const before = handle();
  state.agents = (await answer.json()).items;
  const options = state.agents.map((one) => new Option(`@${one.handle} (${one.online ? "online" : "offline"})`, one.handle));
  $("agent").replaceChildren(...options);
  if (!options.length) return location.reload();
  if (state.agents.some((one) => one.handle === before)) $("agent").value = before;
  pick();
  toast(`${options.length} agent${options.length === 1 ? "" : "s"}.`);
}

// Step 2.

function cardRequest() {
  return { method: "GET", url: `${endpoint(handle())}/agent-card.json`, credentials: "omit" };
}

async function fetchCard() {
  const answer = await fetch(cardRequest().url, { credentials: "omit" });
  const text = await answer.text();
  $("card-status").textContent = `HTTP ${answer.status}`;
  $("card-answer").textContent = answer.ok ? JSON.stringify(JSON.parse(text), null, 2) : text;
}

// Step 3.

function planned() {
  const streaming = $("ask").elements.method.value === "SendStreamingMessage";
  const sound = question(handle(), $("question").value, { streaming, messageId: state.messageId });
  const mistake = MISTAKES[$("mistake").value];
  return mistake ? mistake[1](sound, handle()) : sound;
}

function showRequest() {
  state.sent = null;
  write(planned());
}

function write(request) {
  $("request").textContent = FORMS[$("ask").elements.form.value](request, start.hub, state.token);
}

function forget() {
  state.taskId = "";
  $("get-task").disabled = true;
}

async function send(request) {
  state.reading?.abort();
  const reading = (state.reading = new AbortController());
  const begun = performance.now();
  const step = (kind, text) => addStep(performance.now() - begun, kind, text);
  for (const id of ["steps", "reply", "explained", "raw"]) $(id).replaceChildren();
  $("ask-status").textContent = "Asked, waiting…";
  $("stop").disabled = false;
  write(request);
  try {
    await exchange(request, {
      signal: reading.signal,
      onHead: (response) => step(`HTTP ${response.status}`, response.headers.get("Content-Type") ?? ""),
      onPiece: addRaw,
      onTask: (task) => showTask(task, step),
      onError: (error) => showError(error, step),
    });
  } catch (problem) {
    step("ERROR", reading.signal.aborted ? "you stopped reading; the turn goes on" : String(problem.message));
    $("ask-status").textContent = reading.signal.aborted ? "Stopped." : "The hub is out of reach.";
  }
  if (state.reading === reading) $("stop").disabled = true;
}

function addRaw(text) {
  const room = MAX_RAW_CHARS - $("raw").textContent.length;
  $("raw").append(`${pretty(text).slice(0, Math.max(0, room))}\n\n`);
}

function pretty(text) {
  if (text.startsWith("data: ")) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

function addStep(ms, kind, text) {
  const line = document.createElement("li");
  const name = document.createElement("b");
  name.textContent = kind;
  line.className = kind.split(" ")[0];
  line.append(`${(ms / 1000).toFixed(2)} s `, name, text ? ` ${text}` : "");
  $("steps").append(line);
  $("answer").scrollTop = $("answer").scrollHeight;
}

function showTask(task, step) {
  state.taskId = task.id;
  $("get-task").disabled = false;
  const { state: name } = task.status;
  if (isChunk(task)) {
    const text = textOf(task.status.message);
    step("chunk", `${text.length} characters`);
    $("reply").append(text);
  } else {
    step(name, task.id);
  }
  if (TERMINAL.has(name)) {
    $("reply").textContent = outcomeOf(task);
    $("ask-status").textContent = name === "COMPLETED" ? "Completed." : "Failed.";
    if (name === "FAILED") explainEnd(outcomeOf(task));
  } else {
    $("ask-status").textContent = "The agent works on it…";
  }
  $("answer").scrollTop = $("answer").scrollHeight;
}

function showError({ code, message, status }, step) {
  step("ERROR", String(code ?? ""));
  $("reply").textContent = message;
  $("ask-status").textContent = "Not taken.";
  const known = start.explanations.codes.filter((one) => one.code === code);
  const one = known.find((each) => each.http === String(status)) ?? known[0];
  if (one) explain(`${one.code} ${one.name.toLowerCase().replaceAll("_", " ")}`, one.when, `Ask again? ${one.again || "no"}`);
}

function explainEnd(text) {
  const one = start.explanations.ends.find((each) => new RegExp(each.pattern).test(text));
  if (one) explain(one.reason, one.when, one.advice);
}

function explain(...lines) {
  const paragraphs = lines.filter(Boolean).map((line, index) => {
    const paragraph = document.createElement("p");
    const part = document.createElement(index ? "span" : "strong");
    part.textContent = line;
    paragraph.append(part);
    return paragraph;
  });
  $("explained").replaceChildren(...paragraphs);
}

async function mint() {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"name": "developer reference"}' };
  const answer = await fetch("/api/v1/auth/apps/mint", options);
  const body = await answer.json();
  if (!answer.ok) return toast(body.message);
  state.token = body.token;
  $("mint").disabled = true;
  if ($("ask").elements.form.value === "http") $("ask").elements.form.value = "curl";
  showRequest();
  toast("A new app token is in the request.");
}
