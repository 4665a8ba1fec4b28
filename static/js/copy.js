// Buttons with data-copy="ID" copy the value or the text of that element, also those that come later.
import { toast } from "./toast.js";

export function startCopying(root) {
  root.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    await copyText(source.value ?? source.textContent, source);
  });
}

// Copy a text that an element shows, perhaps in another form.
export async function copyText(text, source) {
  if (await copy(text, source)) toast("Copied.");
  else toast("The browser does not let this page copy. The text is selected: press Ctrl+C.");
}

async function copy(text, source) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copySelected(source, text);
  }
}

// Without `navigator.clipboard`, which browsers give to https and localhost only.
function copySelected(source, text) {
  const fill = (event) => {
    event.clipboardData.setData("text/plain", text);
    event.preventDefault();
  };
  select(source);
  document.addEventListener("copy", fill);
  const is_copied = document.execCommand("copy");
  document.removeEventListener("copy", fill);
  return is_copied;
}

function select(source) {
  if (source.select) source.select();
  else getSelection().selectAllChildren(source);
}
