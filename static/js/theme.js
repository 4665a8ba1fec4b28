// A classic script in the head: a module would run after the first paint, and the page would flash in the other colours.
// The admin stores its theme under the same key.
{
  let chosen;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // storage is forbidden: follow the system
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
