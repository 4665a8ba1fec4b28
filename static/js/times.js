// Shows times in the visitor's time zone: the hub writes them in UTC. Includes times that scripts add later.
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";

// As wide as the hub's own forms (FORMS in kit/page_tags.py), so that nothing on the page moves.
const FORMS = {
  second: { dateStyle: "medium", timeStyle: "medium" },
  minute: { dateStyle: "medium", timeStyle: "short" },
  day: { dateStyle: "medium" },
  clock: { timeStyle: "medium" },
};
const formats = Object.fromEntries(
  Object.entries(FORMS).map(([name, form]) => [name, new Intl.DateTimeFormat("en-GB", { ...form, timeZone: ZONE })]),
);

function localise(within) {
  for (const time of within.querySelectorAll("time[data-form]")) {
    const shown = formats[time.dataset.form].format(new Date(time.dateTime));
    if (time.textContent !== shown) time.textContent = shown;
  }
}

export function startTimes() {
  localise(document);
  for (const name of document.querySelectorAll("[data-zone-name]")) name.textContent = ZONE;
  new MutationObserver((changes) => {
    const places = new Set(changes.filter((one) => one.addedNodes.length > 0).map((one) => one.target));
    for (const place of places) localise(place);
  }).observe(document.body, { childList: true, subtree: true });
}
