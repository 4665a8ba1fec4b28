// Loads a page of this hub, or a part of one. The hub's templates escape the texts of users, and no script in it runs.
export async function load(address, { signal } = {}) {
  const answer = await fetch(address, { credentials: "same-origin", headers: { Accept: "text/html" }, signal });
  if (!answer.ok || answer.redirected) throw Object.assign(new Error(`HTTP ${answer.status}`), { status: answer.status });
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}

// Replace the element of this id by the one from the loaded page.
export function replace(id, from) {
  const fresh = from.getElementById(id);
  if (fresh) document.getElementById(id).replaceWith(document.adoptNode(fresh));
}
