// The socket `/cli`, subscribed to one session. It reconnects by itself, unless the close code of the hub is final.
import { inHub } from "./addresses.js";

const WAITS_S = [1, 2, 5, 15, 30, 60];
const FINAL = new Set([1000, 1008]);
const LOST = "The connection was lost before the hub answered. Look at the transcript before you try again.";

export class Link {
  // `onFrame(frame)`: called with frames that are not answers. `onState(name, detail)`: connecting, live, waiting, ended.
  constructor(sessionId, { onFrame, onState }) {
    Object.assign(this, { sessionId, onFrame, onState, tries: 0, asked: [], subscribed: false, reason: "", is_signed_out: false });
    addEventListener("online", () => this.timer && this.open());
  }

  open() {
    clearTimeout(this.timer);
    this.timer = null;
    this.onState("connecting");
    const socket = (this.socket = new WebSocket(`${location.origin.replace("http", "ws")}${inHub("/cli")}`));
    socket.onopen = () => this.subscribe();
    socket.onmessage = ({ data }) => this.take(JSON.parse(data));
    socket.onclose = ({ code }) => this.socket === socket && this.closed(code);
  }

  subscribe() {
    this.subscribed = false;
    this.say({ type: "subscribe", sessionId: this.sessionId });
  }

  // Send a frame; returns a promise that the hub's answer settles: a refusal rejects it by an Error with `code`.
  send(frame) {
    if (!this.subscribed) return Promise.reject(new Error("There is no connection to the hub right now."));
    this.say({ sessionId: this.sessionId, ...frame });
    return new Promise((resolve, reject) => this.asked.push({ resolve, reject }));
  }

  say(frame) {
    this.socket.send(JSON.stringify(frame));
  }

  take(frame) {
    if (frame.type === "ack") this.asked.shift()?.resolve();
    else if (frame.type === "error") this.refused(frame);
    else {
      if (frame.type === "subscribed") {
        this.subscribed = true;
        this.tries = 0;
        this.onState("live");
      }
      this.onFrame(frame);
    }
  }

  refused({ code, message }) {
    this.reason = message;
    this.is_signed_out = code === "auth_failed" || code === "token_revoked";
    if (this.is_signed_out) return; // the hub closes the socket next
    if (!this.subscribed) return this.end(message);
    this.asked.shift()?.reject(Object.assign(new Error(message), { code }));
    if (code === "forbidden" || code === "not_found") this.subscribe(); // the hub answers whether the user still sees the session, and in which role
  }

  closed(code) {
    this.subscribed = false;
    for (const { reject } of this.asked.splice(0)) reject(new Error(LOST));
    if (FINAL.has(code)) return this.onState("ended", this.reason);
    const wait_s = WAITS_S[Math.min(this.tries++, WAITS_S.length - 1)];
    this.onState("waiting", wait_s);
    this.timer = setTimeout(() => this.open(), wait_s * 1000);
  }

  end(message) {
    this.reason = message;
    this.socket.close(1000);
  }
}
