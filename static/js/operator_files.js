// The files of a session: the hub renders the list; uploads and deletions go over REST.
import { inHub } from "./addresses.js";
import { showReach } from "./failures.js";
import { load, replace } from "./fragment.js";
import { toast } from "./toast.js";

export class Files {
  constructor(sessionId, address, form) {
    Object.assign(this, { sessionId, address, form, armed: null });
    form?.addEventListener("submit", (event) => {
      event.preventDefault();
      this.upload();
    });
    document.addEventListener("click", ({ target }) => target.dataset?.deleteFile && this.delete(target));
  }

  async refresh() {
    const from = await load(`${this.address}/files`).catch(() => null);
    showReach(from !== null);
    if (from) replace("files", from);
  }

  async upload() {
    const body = new FormData();
    body.append("file", this.form.querySelector("input").files[0]);
    if (await ask(`/api/v1/sessions/${this.sessionId}/files`, { method: "POST", body })) {
      this.form.reset();
      toast("Uploaded.");
      this.refresh();
    }
  }

  // The first press asks for confirmation, the second one deletes.
  async delete(button) {
    if (this.armed !== button) {
      this.armed = button;
      button.textContent = "Really?";
      return;
    }
    button.disabled = true;
    if (await ask(`/api/v1/files/${button.dataset.deleteFile}`, { method: "DELETE" })) toast("Deleted.");
    this.refresh();
  }
}

async function ask(address, options) {
  try {
    const answer = await fetch(inHub(address), { credentials: "same-origin", ...options });
    if (!answer.ok) toast((await answer.json()).message);
    return answer.ok;
  } catch {
    toast("The hub is out of reach.");
    return false;
  }
}
