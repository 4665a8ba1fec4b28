// A page or a part of one from the hub itself: its templates escape what others wrote, and nothing in it runs.
export async function load(address, { signal } = {}) {
  const answer = await fetch(address, { credentials: "same-origin", headers: { Accept: "text/html" }, signal });
  if (!answer.ok || answer.redirected) throw Object.assign(new Error(`HTTP ${answer.status}`), { status: answer.status });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// Put the part of that id in the place of the one on this page.
export function replace(id, from) {
  const fresh = from.getElementById(id);
  if (fresh) document.getElementById(id).replaceWith(document.adoptNode(fresh));
}
