// The visitor's time zone, in which pages count days.
import { ZONE } from "./times.js";

// Add the time zone to links to pages that count days.
export function markZone() {
  for (const link of document.querySelectorAll("a[data-zoned]")) {
    const address = new URL(link.href);
    address.searchParams.set("tz", ZONE);
    link.href = address;
  }
}

// Load a page that was opened without a time zone again with it; returns true if the page is loaded again.
export function reopenedInZone() {
  const address = new URL(location.href);
  const shown = document.querySelector("[data-zone]")?.dataset.zone;
  if (!shown || shown === ZONE || address.searchParams.has("tz")) return false;
  address.searchParams.set("tz", ZONE);
  location.replace(address);
  return true;
}
