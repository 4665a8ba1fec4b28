// The forms of the API pages: each sends its call to this hub, with the token typed into the page, else with the session.
import { inHub } from "./addresses.js";

const MAX_SHOWN_CHARS = 20_000;
const token = document.getElementById("try-token");

document.getElementById("try-as")?.addEventListener("submit", (event) => event.preventDefault());
for (const form of document.querySelectorAll("form.try")) form.addEventListener("submit", submit);

async function submit(event) {
  event.preventDefault();
  const form = event.target;
  const button = form.querySelector("button");
  const began = performance.now();
  button.disabled = true;
  show(form, "Sent …", "");
  try {
    const answer = await fetch(...request(form));
    const text = await textOf(answer);
    show(form, `${answer.status} ${answer.statusText}, after ${Math.round(performance.now() - began)} ms`, text);
  } catch (failure) {
    show(form, `No answer: ${failure.message}`, "");
  }
  button.disabled = false;
}

// The address and options of the request that a form describes.
function request(form) {
  const query = new URLSearchParams();
  const headers = {};
  let [method, path] = form.dataset.call.split(" ");
  for (const { name, value, dataset } of form.querySelectorAll("[data-place]")) {
    if (dataset.place === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    else if (value && dataset.place === "header") headers[name] = value;
    else if (value) query.append(name, value);
  }
  if (token.value) headers.Authorization = `Bearer ${token.value.trim()}`;
  const body = form.elements.body?.value;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const address = query.size ? `${inHub(path)}?${query}` : inHub(path);
  return [address, { method, headers, body, credentials: token.value ? "omit" : "same-origin" }];
}

// The text of a response, with JSON indented; of a long text only the beginning.
async function textOf(answer) {
  const text = await answer.text();
  const is_json = (answer.headers.get("Content-Type") ?? "").includes("json");
  const shown = is_json && text ? JSON.stringify(JSON.parse(text), null, 2) : text;
  return shown.length > MAX_SHOWN_CHARS ? `${shown.slice(0, MAX_SHOWN_CHARS)}…` : shown;
}

function show(form, status, text) {
  form.querySelector(".status").textContent = status;
  form.querySelector(".tried").textContent = text;
}
