// Counts down the time until a deadline each second. The page has the time that was left when the hub rendered it.
const TICK_MS = 1000;
const UNITS = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

function describe(left_s) {
  if (left_s <= 0) return "closes now";
  let rest = left_s;
  const parts = [];
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0 || parts.length > 0) parts.push(count > 0 ? `${count} ${unit}` : "");
  }
  return `${parts.slice(0, 2).filter(Boolean).join(" ")} left`;
}

function tick() {
  for (const one of document.querySelectorAll("[data-until]")) {
    const text = describe(Math.round((new Date(one.dataset.until) - Date.now()) / 1000));
    if (one.textContent !== text) one.textContent = text;
  }
}

setInterval(tick, TICK_MS);
