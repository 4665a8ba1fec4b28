// The dialog that shares an answer: shares it over REST, and shows the address to send. Pages load this script when it is opened.
import { inHub } from "./addresses.js";
import { copyText } from "./copy.js";
import { make } from "./elements.js";

const NO_ANSWER = "The hub does not answer: try again.";
const NO_LOGIN = "Name at least one login.";
const MAX_LOGINS = 20;
const $ = (id) => document.getElementById(id);
let wanted = {};
let isStarted = false;

// `what`: the part of the body that says what is shared: {taskId} or {threadId}.
export function openShare(what) {
  if (!isStarted) start();
  wanted = what;
  $("share-head").textContent = what.threadId ? "Share this thread" : "Share this answer";
  $("share-error").textContent = "";
  $("share-made").replaceChildren();
  $("share").showModal();
}

function start() {
  isStarted = true;
  const form = $("share").querySelector("form");
  form.addEventListener("change", update);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    share(form);
  });
  $("share-close").addEventListener("click", () => $("share").close());
  $("share").addEventListener("click", ({ target }) => target === $("share") && $("share").close());
  update();

  function update() {
    $("share-people").hidden = form.audience.value !== "user";
    if ($("share-group")) $("share-group").hidden = form.audience.value !== "group";
  }
}

// Share with each named user, or once with the other audiences; stops at the first error.
async function share(form) {
  const audience = form.audience.value;
  const days = Number(form.days.value);
  const logins = form.logins.value.split(/[\s,]+/).filter(Boolean).slice(0, MAX_LOGINS);
  const submit = form.querySelector("[type=submit]");
  $("share-error").textContent = audience === "user" && !logins.length ? NO_LOGIN : "";
  if ($("share-error").textContent) return form.logins.focus();
  submit.disabled = true;
  try {
    const named = { user: logins, group: [form.group?.value] }[audience];
    for (const to of named?.map((login) => ({ login })) ?? [{}]) showMade(await post({ ...wanted, audience, ...to, days }));
    form.logins.value = "";
  } catch (failure) {
    $("share-error").textContent = failure instanceof TypeError ? NO_ANSWER : `${failure.message[0].toUpperCase()}${failure.message.slice(1)}.`;
  }
  submit.disabled = false;
}

async function post(body) {
  const answer = await fetch(inHub("/api/v1/shares"), {
    method: "POST",
    credentials: "same-origin",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.message);
  return told;
}

const WHOM = { everyone: "everyone who is signed in", link: "everyone who has this link" };

function showMade({ id, url, audience, login }) {
  const whom = login ? `@${login}` : WHOM[audience];
  const address = Object.assign(make("input"), { id: `share-${id}`, value: url, readOnly: true, ariaLabel: `Address for ${whom}` });
  const copy = Object.assign(make("button", "quiet", "Copy"), { type: "button", ariaLabel: `Copy the address for ${whom}` });
  copy.addEventListener("click", async () => {
    await copyText(url, address);
    copy.textContent = "Copied";
  });
  const note = audience === "link" ? " Copy it now: it is not shown again." : "";
  $("share-made").append(make("p", "", `Shared with ${whom}.${note}`), make("p", "choices nowrap", address, copy));
  address.select();
}
