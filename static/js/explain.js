// What an error or a failed task means and what to do, in the words of the hub's own tables (the tag `explanations`).
const known = () => JSON.parse(document.getElementById("explanations").textContent);

// Of the text of a FAILED task.
export function explainEnd(text) {
  const one = known().ends.find((each) => new RegExp(each.pattern).test(text));
  return one ? [one.when, one.advice].filter(Boolean) : [];
}

// Of a request that was not taken.
export function explainError({ code, status }) {
  if (status === 401) return ["Your sign-in has ended. Sign in again, then ask again: nothing was sent."];
  const alike = known().codes.filter((one) => one.code === code);
  const one = alike.find((each) => each.http === String(status)) ?? alike[0];
  return one ? [one.when, `Ask again? ${one.again || "no"}`] : [];
}
