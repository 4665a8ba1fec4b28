// Forms with data-passkey: "create" makes a passkey by the options in the form; "get" signs with a passkey by options
// that it fetches. The browser's answer is put into the field `credential`, and the form is submitted.
const NOT_SECURE = "Passkeys work over https only, and this page came over http.";
const UNSUPPORTED = "This browser has no passkeys.";
const NOT_DONE = "No passkey was chosen, or the time ran out. Try again.";

const obstacle = window.isSecureContext ? (window.PublicKeyCredential ? "" : UNSUPPORTED) : NOT_SECURE;

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (obstacle) {
    form.querySelector("button").disabled = true;
    show(form, obstacle);
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    show(form, "");
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      const answer = await (form.dataset.passkey === "create" ? create(form) : get(form));
      form.elements.credential.value = JSON.stringify(answer);
      form.submit();
    } catch (failure) {
      show(form, failure instanceof DOMException ? (failure.name === "NotAllowedError" ? NOT_DONE : failure.message) : failure.message);
      button.disabled = false;
    }
  });
}

async function create(form) {
  const options = JSON.parse(form.dataset.options);
  const made = await navigator.credentials.create({
    publicKey: {
      ...options,
      challenge: bytes(options.challenge),
      user: { ...options.user, id: bytes(options.user.id) },
      excludeCredentials: [],
    },
  });
  return { ...named(made), response: texts(made.response, ["clientDataJSON", "attestationObject"]) };
}

async function get(form) {
  const token = form.elements.csrfmiddlewaretoken.value;
  const answer = await fetch(form.dataset.optionsAt, { method: "POST", headers: { "X-CSRFToken": token } });
  if (!answer.ok) throw new Error(answer.status === 429 ? "Too many tries from here: wait a minute." : `The hub answered ${answer.status}: reload the page.`);
  const { state, options } = await answer.json();
  form.elements.state.value = state;
  const signed = await navigator.credentials.get({ publicKey: { ...options, challenge: bytes(options.challenge), allowCredentials: [] } });
  const names = ["clientDataJSON", "authenticatorData", "signature", "userHandle"];
  return { ...named(signed), response: texts(signed.response, names) };
}

function named(credential) {
  return { id: credential.id, rawId: text(credential.rawId), type: credential.type, clientExtensionResults: {} };
}

function texts(response, names) {
  return Object.fromEntries(names.filter((name) => response[name]).map((name) => [name, text(response[name])]));
}

function bytes(base64url) {
  const plain = atob(base64url.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
}

function text(buffer) {
  const plain = btoa(String.fromCharCode(...new Uint8Array(buffer)));
  return plain.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function show(form, problem) {
  const line = form.querySelector("[data-problem]");
  line.textContent = problem;
  line.hidden = !problem;
}
