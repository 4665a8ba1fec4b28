// Shows a sentence at the lower edge for some seconds; screen readers announce it.
import { make } from "./elements.js";

const SHOWN_MS = 5000;

export function toast(text) {
  const line = make("p", "", text);
  const list = document.querySelector("#toasts");
  list.append(line);
  while (list.children.length > 3) list.firstChild.remove();
  setTimeout(() => line.remove(), SHOWN_MS);
}
