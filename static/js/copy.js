// Buttons with data-copy="ID" copy the value or the text of that element, also those that come later.
import { toast } from "./toast.js";

export function startCopying(root) {
  root.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      toast("Copied.");
    } catch {
      select(source);
      toast("The browser does not let this page copy. The text is selected: press Ctrl+C.");
    }
  });
}

function select(source) {
  if (source.select) source.select();
  else getSelection().selectAllChildren(source);
}
