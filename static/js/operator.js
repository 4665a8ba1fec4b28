// The page of one session for its operators: the socket reports a change, and the page then loads HTML from the hub.
import { Files } from "./operator_files.js";
import { Link } from "./operator_link.js";
import { Permissions } from "./operator_permissions.js";
import { inHub } from "./addresses.js";
import { make } from "./elements.js";
import { Transcript } from "./operator_transcript.js";
import { toast } from "./toast.js";

const $ = (id) => document.getElementById(id);
const seen = JSON.parse($("seen").textContent);
const address = inHub(`/desk/sessions/${seen.id}`);

openTurn();
const files = new Files(seen.id, address, $("upload"));
const link = new Link(seen.id, { onFrame: (frame) => ON[frame.type]?.(frame), onState: showState });
const permissions = new Permissions($("waiting"), $("permission-count"), decide);
const transcript = new Transcript($("transcript"), $("growing"), address, permissions);
addEventListener("hashchange", openTurn);

const ON = {
  subscribed({ role }) {
    if (role !== seen.role) return location.reload();
    transcript.refresh();
    files.refresh();
  },
  event: () => transcript.refresh(),
  op_message: () => transcript.refresh(),
  chat_reply_chunk: (frame) => transcript.grow(frame),
  permission_request: () => transcript.refresh(),
  permission_resolved: () => transcript.refresh(),
  presence({ attached }) {
    $("attached").replaceChildren(...attached.map((login) => make("li", "", `@${login}`)));
  },
  channel_status({ connected }) {
    $("channel").className = `state ${connected ? "on" : "off"}`;
    $("channel").textContent = `agent ${connected ? "online" : "offline"}`;
  },
  file_event() {
    files.refresh();
    transcript.refresh();
  },
};

function decide(requestId, decision) {
  return link.send({ type: "approval", requestId, decision });
}

// If the address ends with `#turn-ID`, open the part of the transcript with that turn, unless it is shown already.
function openTurn() {
  const turn = /^#turn-([\w-]{1,64})$/.exec(location.hash)?.[1];
  const wasAsked = new URLSearchParams(location.search).get("turn") === turn;
  if (turn && !wasAsked && !$(`turn-${turn}`)) location.replace(`${address}?turn=${turn}${location.hash}`);
}

function showState(name, detail) {
  const text = {
    live: "live",
    connecting: "connecting…",
    waiting: `connection lost, trying again in ${detail} s`,
    ended: `ended${detail ? `: ${detail}` : ""}`,
  }[name];
  const state = make("span", `state ${{ live: "on", connecting: "busy", waiting: "busy" }[name] ?? "off"}`, text);
  const next = name === "waiting" ? [now()] : name === "ended" && link.is_signed_out ? [again()] : [];
  $("link").replaceChildren(state, ...next);
}

function now() {
  const button = Object.assign(make("button", "quiet", "Now"), { type: "button" });
  button.addEventListener("click", () => link.open());
  return button;
}

function again() {
  const back = Object.assign(make("a", "", "Sign in again"), { href: inHub("/signin") });
  back.search = new URLSearchParams({ next: address });
  return back;
}

// Makes a form send one frame; the text box is emptied once the hub has accepted the frame.
function sending(form, box, frame) {
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const button = form.querySelector("button");
    if (button.disabled || !box.value.trim()) return;
    button.disabled = true;
    try {
      await link.send(frame(box.value));
      box.value = "";
      transcript.toEnd();
    } catch (refused) {
      toast(refused.message);
    }
    button.disabled = false;
    if (document.activeElement === document.body || form.contains(document.activeElement)) box.focus();
  });
}

sending($("prompt"), $("prompt-text"), (text) => ({ type: "prompt", text }));
sending($("op"), $("op-text"), (text) => ({ type: "op_message", text }));
$("prompt-text")?.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) $("prompt").requestSubmit();
});
link.open();
