// The permission requests that wait, at the end of the transcript: the hub's templates write them, an approver decides.
import { toast } from "./toast.js";

const KEYS = { a: "allow", d: "deny" };

export class Permissions {
  // `decide(requestId, decision)` gives a promise; the hub sends buttons only to those who may decide.
  constructor(list, count, decide) {
    Object.assign(this, { list, count, decide, title: document.title });
    list.addEventListener("click", ({ target }) => {
      if (target.dataset.decision) this.settle(requestOf(target), target.dataset.decision);
    });
    list.addEventListener("keydown", (event) => {
      const decision = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
      const request = requestOf(event.target);
      if (decision && request?.querySelector("button")) this.settle(request, decision);
    });
    this.showCount();
  }

  // Show those of a newer page of the hub; those that wait still keep their place and the focus.
  see(from) {
    const fresh = [...from.querySelectorAll("#waiting > li")];
    const ids = new Set(fresh.map(({ id }) => id));
    const gone = [...this.list.children].filter(({ id }) => !ids.has(id));
    const hadFocus = gone.some((one) => one.contains(document.activeElement));
    for (const one of gone) one.remove();
    const here = new Set([...this.list.children].map(({ id }) => id));
    this.list.append(...fresh.filter(({ id }) => !here.has(id)).map((one) => document.adoptNode(one)));
    this.showCount();
    if (hadFocus) (this.list.querySelector("button") ?? document.getElementById("transcript-head")).focus();
  }

  async settle(request, decision) {
    const buttons = request.querySelectorAll("button");
    for (const button of buttons) button.ariaDisabled = "true"; // a disabled one would lose the focus
    try {
      await this.decide(request.dataset.request, decision);
    } catch (refused) {
      toast(refused.message);
      for (const button of buttons) button.ariaDisabled = null;
    }
  }

  showCount() {
    const count = this.list.children.length;
    this.count.textContent = String(count);
    this.count.classList.toggle("bad", count > 0);
    document.title = count ? `(${count}) ${this.title}` : this.title;
  }
}

const requestOf = (element) => element.closest("[data-request]");
