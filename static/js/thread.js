// The page of a thread: the ask box continues the conversation, whose earlier questions the page shows above it.
import { startAsking } from "./asking.js";
import { watch } from "./standing.js";

const $ = (id) => document.getElementById(id);
const place = $("place");

if ($("ask")) {
  const look = watch(place.dataset.standing, ({ mayAsk, advice }) => {
    if (advice !== undefined && $("advice").textContent !== advice) $("advice").textContent = advice;
    asking.allow(mayAsk, advice);
  });
  const asking = startAsking(place.dataset.handle, { onEnd: look, contextId: place.dataset.context });
}

$("share-thread")?.addEventListener("click", async ({ target }) => (await import("./share.js")).openShare({ threadId: target.dataset.thread }));
