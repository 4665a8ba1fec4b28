// Explains an error or the end of a task, and what the caller can do, by the hub's own tables (the tag `explanations`).
const known = () => JSON.parse(document.getElementById("explanations").textContent);

// The explanation of a task that ended without an answer, by the task's text; null for a text that the agent wrote. Several
// ends may have the same text: with `wasSent` (the agent got the question) refusals are left out, and if the remaining
// ends differ in `counted`, it is empty.
export function explainEnd(text, { wasSent = false } = {}) {
  const alike = known().ends.filter((each) => new RegExp(each.pattern).test(text));
  const ends = wasSent ? alike.filter((each) => each.wasSent) : alike;
  const [one] = ends;
  return one ? { ...one, counted: ends.every(({ counted }) => counted === one.counted) ? one.counted : "" } : null;
}

// The explanation of the error of a refused request.
export function explainError({ code, status }) {
  if (status === 401) return ["Your sign-in has ended. Sign in again, then ask again: nothing was sent."];
  const alike = known().codes.filter((one) => one.code === code);
  const one = alike.find((each) => each.http === String(status)) ?? alike[0];
  return one ? [one.when, `Ask again? ${one.again || "no"}`] : [];
}
