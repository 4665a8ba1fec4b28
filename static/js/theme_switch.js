// The button in the header switches from system to light, to dark, and back to system.
const CHOICES = ["auto", "light", "dark"];
const NAMES = { auto: "as the system", light: "light", dark: "dark" };

export function startThemeSwitch(button) {
  if (!button) return;
  const root = document.documentElement;
  const show = () => {
    const name = `Colours: ${NAMES[root.dataset.theme ?? "auto"]}`;
    button.setAttribute("aria-label", name);
    button.title = name;
  };
  button.addEventListener("click", () => {
    const next = CHOICES[(CHOICES.indexOf(root.dataset.theme ?? "auto") + 1) % CHOICES.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    try {
      localStorage.setItem("theme", next);
    } catch {
      // storage is forbidden: the choice holds for this page only
    }
    show();
  });
  show();
}
