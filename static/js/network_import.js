// While a file is under way its button does nothing more, and the page says so.
const form = document.getElementById("import");
const progress = document.getElementById("progress");

form.addEventListener("submit", (event) => {
  const button = form.querySelector("button");
  if (button.getAttribute("aria-disabled") === "true") return event.preventDefault();
  button.setAttribute("aria-disabled", "true");
  progress.textContent = "Importing …";
});
// The page comes back from the browser's memory as it was left.
addEventListener("pageshow", () => {
  form.querySelector("button").removeAttribute("aria-disabled");
  progress.textContent = "";
});
