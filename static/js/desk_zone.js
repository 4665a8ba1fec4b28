// The visitor's time zone: days are counted in it, times are shown in it.
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "UTC";

// Links to pages that count days say in which zone.
export function markZone() {
  for (const link of document.querySelectorAll("a[data-zoned]")) {
    const address = new URL(link.href);
    address.searchParams.set("tz", ZONE);
    link.href = address;
  }
}

// A page that was opened without a zone is opened again with it; true when that happens.
export function reopenedInZone() {
  const address = new URL(location.href);
  const shown = document.querySelector("[data-zone]")?.dataset.zone;
  if (!shown || shown === ZONE || address.searchParams.has("tz")) return false;
  address.searchParams.set("tz", ZONE);
  location.replace(address);
  return true;
}

// Times, written by the hub in UTC, in the visitor's zone: as wide as they were.
export function localise() {
  const format = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium", timeZone: ZONE });
  for (const time of document.querySelectorAll("time[datetime]")) time.textContent = format.format(new Date(time.dateTime));
  for (const name of document.querySelectorAll("[data-zone-name]")) name.textContent = ZONE;
}
