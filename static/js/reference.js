// The "Try it" of the developer reference. Texts of agents and owners are shown by textContent.
import { ASKS, ENDED, endpoint, exchange, newMessageId, textOf } from "./a2a.js";
import { inHub } from "./addresses.js";
import { Artifacts, PartsAsText } from "./artifacts.js";
import { about, asking, isReply, Reply, sightOf } from "./dialects.js";
import { make } from "./elements.js";
import { replace } from "./fragment.js";
import { MISTAKES } from "./mistakes.js";
import { SDKS } from "./sdk_snippets.js";
import { searchAsTyped } from "./search_as_typed.js";
import { asCurl, asHttp, asPython, asTypeScript } from "./snippets.js";
import { toast } from "./toast.js";

const FORMS = { http: asHttp, curl: asCurl, python: asPython, typescript: asTypeScript };
const SAID = { COMPLETED: "Completed.", FAILED: "Failed.", CANCELED: "Canceled.", REJECTED: "Rejected." };
const MAX_RAW_CHARS = 200_000;
const start = JSON.parse(document.getElementById("start").textContent);
const ARTIFACTS_ALONE = "No reply: the agent sent artifacts.";
const $ = (id) => document.getElementById(id);
const artifacts = new Artifacts($("artifacts"), PartsAsText);
const state = { agent: start.agent, token: "", taskId: "", seen: "", messageId: newMessageId(), reading: null, reply: null };

if (state.agent) {
  for (const [key, [name]] of Object.entries(MISTAKES)) $("mistake").append(new Option(name, key));
  const search = searchAsTyped($("q"), foundAddress, showFound);
  $("find").addEventListener("submit", (event) => {
    event.preventDefault();
    search();
  });
  $("find").parentElement.addEventListener("click", pickFound);
  $("fetch-card").addEventListener("click", fetchCard);
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    send(planned());
    state.messageId = newMessageId();
  });
  $("dialects").addEventListener("change", speak);
  $("ask").addEventListener("input", showRequest);
  for (const button of document.querySelectorAll("[data-operation]")) {
    const { operation } = button.dataset;
    button.addEventListener("click", () => send(about(dialect(), handle(), operation, state.taskId, replay(operation))));
  }
  $("stop").addEventListener("click", () => state.reading?.abort());
  $("mint")?.addEventListener("click", mint);
  speak();
  showPicked();
}

function handle() {
  return state.agent.handle;
}

function dialect() {
  return start.dialects.find((one) => one.key === $("ask").elements.dialect.value);
}

// Show the method names and the operations of the chosen dialect.
function speak() {
  const { key, methods } = dialect();
  for (const how of ["stream", "send"]) $(`name-${how}`).textContent = methods[how];
  for (const button of document.querySelectorAll("[data-operation]")) {
    button.textContent = methods[button.dataset.operation] ?? "";
    button.hidden = !(button.dataset.operation in methods);
  }
  choose("how", { begin: Boolean(methods.cancel) }, "send");
  choose("form", { "python-sdk": "python-sdk" in (SDKS[key] ?? {}), "js-sdk": "js-sdk" in (SDKS[key] ?? {}) }, "curl");
  enable();
  showRequest();
}

// Enable or disable radio buttons; if the checked one is disabled, check `instead`.
function choose(name, there, instead) {
  for (const one of $("ask").elements[name]) {
    if (one.value in there) one.disabled = !there[one.value];
    if (one.disabled && one.checked) $("ask").elements[name].value = instead;
  }
}

function enable() {
  for (const button of document.querySelectorAll("[data-operation]")) button.disabled = !state.taskId;
}

// The id of the event after which a subscription resumes; empty in dialects whose events have no ids.
const replay = (operation) => (operation === "subscribe" && dialect().version ? state.seen : "");

// Step 1.

function foundAddress(text) {
  return inHub(`/demos/a2a/agents?${new URLSearchParams({ q: text, agent: handle() })}`);
}

function showFound(page) {
  replace("found", page);
  $("found-count").textContent = $("found").dataset.summary;
}

// A link of the list opens this page with its agent picked: the script does the same and keeps the typed question.
function pickFound(event) {
  const link = event.target.closest("[data-choice]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  $("found").querySelector("[aria-current]")?.removeAttribute("aria-current");
  link.setAttribute("aria-current", "true");
  state.agent = JSON.parse(link.dataset.choice);
  $("find").elements.agent.value = handle();
  history.replaceState(null, "", link.href);
  showPicked();
}

function showPicked() {
  const { agent } = state;
  const left = Math.max(0, agent.dailyBudgetQueries - agent.queriesToday);
  $("about-handle").textContent = `@${agent.handle}`;
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

// Step 2.

function cardRequest() {
  return { method: "GET", url: `${endpoint(handle())}/agent-card.json`, credentials: "omit" };
}

async function fetchCard() {
  const answer = await fetch(inHub(cardRequest().url), { credentials: "omit" });
  const text = await answer.text();
  $("card-status").textContent = `HTTP ${answer.status}`;
  $("card-answer").textContent = answer.ok ? JSON.stringify(JSON.parse(text), null, 2) : text;
}

// Step 3.

function planned() {
  const { elements } = $("ask");
  const taskId = $("go-on").checked ? state.taskId : "";
  const sound = asking(dialect(), handle(), elements.question.value, { how: elements.how.value, messageId: state.messageId, taskId });
  const mistake = MISTAKES[elements.mistake.value];
  return mistake ? mistake[1](sound, { dialect: dialect(), handle: handle() }) : sound;
}

function showRequest() {
  write(planned());
}

function write(request) {
  const form = $("ask").elements.form.value;
  const sdk = SDKS[dialect().key]?.[form];
  const what = { hub: start.hub, handle: handle(), text: $("question").value, token: state.token };
  $("request").textContent = sdk ? sdk(what) : FORMS[form](request, start.hub, state.token);
}

function forget() {
  Object.assign(state, { taskId: "", seen: "" });
  offerToGoOn(false);
  enable();
}

// Enable or disable the choice that the next message answers the task.
function offerToGoOn(may) {
  $("go-on").disabled = !may;
  $("go-on").checked = may;
}

async function send(request) {
  state.reading?.abort();
  const reading = (state.reading = new AbortController());
  const begun = performance.now();
  const step = (kind, text) => addStep(performance.now() - begun, kind, text);
  const goesOn = "Last-Event-ID" in request.headers;
  const reply = (state.reply = goesOn ? state.reply : new Reply());
  for (const id of ["steps", "explained", "raw", ...(goesOn ? [] : ["reply"])]) $(id).replaceChildren();
  if (!goesOn) artifacts.clear();
  $("ask-status").textContent = "Asked, waiting…";
  $("stop").disabled = false;
  write(request);
  offerToGoOn(false);
  try {
    await exchange(request, {
      signal: reading.signal,
      onHead: (response) => step(`HTTP ${response.status}`, response.headers.get("Content-Type") ?? ""),
      onPiece: addRaw,
      onShown: (shown, id) => show(shown, id, reply, step),
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
  const time = `${(ms / 1000).toFixed(2)} s `;
  $("steps").append(make("li", kind.split(" ")[0], time, make("b", "", kind), text ? ` ${text}` : ""));
  $("answer").scrollTop = $("answer").scrollHeight;
}

// Show one result or event, of any dialect.
function show(shown, id, reply, step) {
  const sight = sightOf(shown);
  if ("taskId" in sight) state.taskId = sight.taskId ?? "";
  if (id) state.seen = id;
  enable();
  reply.see(sight);
  for (const artifactId of artifacts.see(sight)) step("artifact", artifactId);
  if (sight.state) showState(sight, reply, step);
  else if (sight.artifacts) showPieces(sight, reply, step);
  else $("ask-status").textContent = "Answered.";
  $("answer").scrollTop = $("answer").scrollHeight;
}

function showPieces(sight, reply, step) {
  const [artifact] = sight.artifacts;
  if (!isReply(artifact.artifactId)) return;
  const text = textOf(artifact);
  if (text) step("chunk", `${text.length} characters`);
  reply.write($("reply"), sight);
}

function showState({ state: name, taskId, message }, reply, step) {
  const words = textOf(message);
  const isEnd = ENDED.has(name);
  step(name, name === "WORKING" && words ? words : (taskId ?? "no task"));
  if (!isEnd && !ASKS.has(name)) {
    $("ask-status").textContent = "The agent works on it…";
    return;
  }
  $("reply").textContent = name === "COMPLETED" ? reply.replyText || words || (artifacts.isEmpty ? "" : ARTIFACTS_ALONE) : words;
  $("ask-status").textContent = SAID[name] ?? "The agent asks back.";
  if (ASKS.has(name)) offerToGoOn(Boolean(dialect().methods.cancel));
  else if (name !== "COMPLETED") explainEnd(words);
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
  if (one) explain(one.reason, one.caller, one.advice || one.counted);
}

function explain(...lines) {
  const paragraphs = lines.filter(Boolean).map((line, index) => make("p", "", make(index ? "span" : "strong", "", line)));
  $("explained").replaceChildren(...paragraphs);
  $("answer").scrollTop = $("answer").scrollHeight;
}

async function mint() {
  const options = { method: "POST", headers: { "Content-Type": "application/json" }, body: '{"name": "developer reference"}' };
  const answer = await fetch(inHub("/api/v1/auth/apps/mint"), options);
  const body = await answer.json();
  if (!answer.ok) return toast(body.message);
  state.token = body.token;
  $("mint").disabled = true;
  if ($("ask").elements.form.value === "http") $("ask").elements.form.value = "curl";
  showRequest();
  toast("A new app token is in the request.");
}
