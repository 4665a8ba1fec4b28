// Classic and in the head, because a module runs after the first paint: the page would flash in the other colours.
// The admin keeps its choice under the same key.
{
  let chosen;
  try {
    chosen = localStorage.getItem("theme");
  } catch {
    // storage is forbidden: follow the system
  }
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
