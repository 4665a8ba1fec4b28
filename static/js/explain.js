// What an error or the end of a task means and what to do, in the words of the hub's own tables (the tag `explanations`).
const known = () => JSON.parse(document.getElementById("explanations").textContent);

// The explanation of a task without an answer, by its text; null for an agent's own text. Several ends may have one text:
// an end after the agent got the question (`wasSent`) is no refusal, and where the ends differ, `counted` is left out.
export function explainEnd(text, { wasSent = false } = {}) {
  const alike = known().ends.filter((each) => new RegExp(each.pattern).test(text));
  const ends = wasSent ? alike.filter((each) => each.wasSent) : alike;
  const [one] = ends;
  return one ? { ...one, counted: ends.every(({ counted }) => counted === one.counted) ? one.counted : "" } : null;
}

// Of a request that was not taken.
export function explainError({ code, status }) {
  if (status === 401) return ["Your sign-in has ended. Sign in again, then ask again: nothing was sent."];
  const alike = known().codes.filter((one) => one.code === code);
  const one = alike.find((each) => each.http === String(status)) ?? alike[0];
  return one ? [one.when, `Ask again? ${one.again || "no"}`] : [];
}
