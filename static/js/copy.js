// Buttons with data-copy="ID" copy the value or the text of that element, also buttons that scripts add later.
import { make } from "./elements.js";
import { toast } from "./toast.js";

export function startCopying(root) {
  root.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    const source = document.getElementById(button.dataset.copy);
    await copyText(source.value ?? source.textContent, source);
  });
}

// The code blocks of the documentation get a button each.
export function addCopyButtons() {
  for (const pre of document.querySelectorAll(".manual pre, .recipes pre, .call > pre")) {
    const frame = make("div", "copyable");
    pre.replaceWith(frame);
    frame.append(pre, copyButton(pre));
  }
}

export function copyButton(code) {
  const button = make("button", "quiet", "Copy");
  Object.assign(button, { type: "button", ariaLabel: "Copy the code" });
  button.addEventListener("click", () => copyText(code.textContent, code));
  return button;
}

// Copy a text that an element shows; the text may differ from the element's own.
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

// Copies without `navigator.clipboard`, which browsers offer only on https and localhost.
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
