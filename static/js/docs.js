// Searches the documentation while the visitor types.
import { replace } from "./fragment.js";
import { searchAsTyped } from "./search_as_typed.js";

const field = document.getElementById("q");

function addressOf(text) {
  const address = new URL(field.form.action);
  if (text) address.searchParams.set("q", text);
  return address;
}

searchAsTyped(field, addressOf, (page, address) => {
  replace("results", page);
  history.replaceState(null, "", address);
});
