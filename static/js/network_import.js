// While a file is uploaded, the button is disabled and the page shows the upload.
const form = document.getElementById("import");
const progress = document.getElementById("progress");

form.addEventListener("submit", (event) => {
  const button = form.querySelector("button");
  if (button.getAttribute("aria-disabled") === "true") return event.preventDefault();
  button.setAttribute("aria-disabled", "true");
  progress.textContent = "Importing …";
});
// A page from the browser's back/forward cache still has the state of the upload.
addEventListener("pageshow", () => {
  form.querySelector("button").removeAttribute("aria-disabled");
  progress.textContent = "";
});
