// Files that the hub keeps for a question: a picture, or the first page of a PDF, and a link to save the file. The hub
// serves previews from an address that runs nothing, and the browser draws them, if it can show PDF at all.
import { PATH, inHub } from "./addresses.js";
import { make } from "./elements.js";

const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]);
const ADDRESS = /^\/api\/v1\/files\/(\d+)\/content$/;
const GONE = "It was deleted, or has expired.";

// The id of the file that an address of this hub names; empty for any other address.
export function keptId(url) {
  if (!URL.canParse(url) || new URL(url).origin !== location.origin) return "";
  const { pathname } = new URL(url);
  return pathname.startsWith(PATH) ? (ADDRESS.exec(pathname.slice(PATH.length))?.[1] ?? "") : "";
}

// `showWhole(picture, name)`: shows a picture in full size.
export function keptFile({ url, mediaType = "", filename = "file" }, showWhole) {
  const id = keptId(url);
  const link = Object.assign(make("a", "", make("bdi", "", filename)), { href: inHub(`/api/v1/files/${id}/content`), download: filename });
  const saved = make("span", "saved", link, make("span", "hint", mediaType));
  const preview = inHub(`/api/v1/files/${id}/preview`);
  if (PICTURES.has(mediaType)) return { node: make("figure", "", pictureOf(preview, filename, showWhole), make("figcaption", "", saved)) };
  if (mediaType === "application/pdf" && navigator.pdfViewerEnabled) return { node: make("div", "file", saved, pagesOf(preview, filename)) };
  return { node: make("p", "file", saved) };
}

function pictureOf(preview, filename, showWhole) {
  const picture = () => Object.assign(make("img"), { src: preview, alt: `Image ${filename}`, loading: "lazy", decoding: "async" });
  const small = picture();
  const open = Object.assign(make("button", "image", small), { type: "button", title: "Full size" });
  open.addEventListener("click", () => showWhole(picture(), filename));
  small.addEventListener("error", () => open.replaceWith(make("p", "hint", GONE)));
  return open;
}

// The frame is loaded when it is opened: a page may show many files.
function pagesOf(preview, filename) {
  const details = make("details", "pdf", make("summary", "", "Show the first page"));
  details.addEventListener("toggle", async () => {
    if (!details.open || details.querySelector("iframe, p")) return;
    const { ok } = await fetch(preview, { method: "HEAD", credentials: "same-origin" }).catch(() => ({ ok: false }));
    if (!ok) return details.append(make("p", "hint", GONE));
    details.append(Object.assign(make("iframe"), { src: `${preview}#page=1&view=Fit&toolbar=0&navpanes=0`, title: `First page of ${filename}` }));
  });
  return details;
}
