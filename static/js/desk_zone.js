// The visitor's time zone, in which pages count days.
import { ZONE } from "./times.js";

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
