"""Fields full of vectors, and what a page shows that took one for markup or an address."""

from dataclasses import dataclass

from playwright.async_api import Page

from tests.browser.vectors import OUTSIDE, RUN

# One for each way out of where a text is put; the first breaks out of most of them.
ONE_OF_EACH_KIND = [
    f"\"'></textarea></option></select><img src=x onerror={RUN}>",
    f"</script><script>{RUN}</script>",
    f"<base href={OUTSIDE}/>",
    f'" onfocus={RUN} autofocus x="',
    f"' onfocus={RUN} autofocus x='",
    f"--><img src=x onerror={RUN}><!--",
    f"{{{{ {RUN} }}}}{{% debug %}}",
    f"${{{RUN}}}`${{{RUN}}}`",
    f'";{RUN};//',
    f"[x](javascript:{RUN})",
    f"![x]({OUTSIDE}/pixel.png)",
]

# The elements that no page of the hub has, those with a handler in an attribute, and those with an address that
# runs something, or leads elsewhere without a click. Styles and scripts are those of the hub's own files.
INTRUDERS = """(page = document) => {
  const found = [];
  const strange = "base, object, embed, applet, frame, frameset, portal, marquee, isindex, plaintext, xmp,"
    + "listing, noembed, xss, math, foreignObject, animate, set, mglyph, image, iframe[srcdoc], meta[http-equiv],"
    + "[ping], [background], [srcset]";
  const loading = ["src", "href", "xlink:href", "action", "formaction", "poster", "data", "code", "lowsrc"];
  const saved = /^data:application[/]octet-stream;base64,/;
  const picture = /^data:image[/](png|jpeg|gif|webp|avif);base64,/;
  const schemes = ["http:", "https:", "mailto:", "blob:"];
  for (const one of page.querySelectorAll("*")) {
    const name = one.localName;
    let isStrange = one.matches(strange);
    if (name === "script" && !one.src && !["application/json", "importmap"].includes(one.type)) isStrange = true;
    if (name === "style" && one.textContent.includes("evil.example")) isStrange = true;
    for (const {name: key, value} of one.attributes) {
      if (/^on/i.test(key)) isStrange = true;
      if (!loading.includes(key)) continue;
      const url = URL.parse(value, document.baseURI);
      if (saved.test(value) && one.matches("a[download]") || picture.test(value) && name === "img") continue;
      if (url && !schemes.includes(url.protocol)) isStrange = true;
      if (url && name !== "a" && url.protocol !== "blob:" && url.origin !== location.origin) isStrange = true;
    }
    if (isStrange) found.push(one.outerHTML.slice(0, 200));
  }
  return found;
}"""


@dataclass
class Hostile:
    """Some vectors, taken in turn by each field."""

    vectors: list[str]
    at: int = 0

    def text(self, at_most: int = 20_000) -> str:
        """The next vectors, each whole, as far as there is room; at least the beginning of one."""
        text = ""
        for _ in self.vectors:
            vector = self.vectors[self.at % len(self.vectors)]
            if text and len(text) + 1 + len(vector) > at_most:
                break
            text = f"{text} {vector}".strip()
            self.at += 1
        return text[:at_most]

    def word(self, at_most: int = 40) -> str:
        """A vector without spaces."""
        return "".join(self.text(at_most).split())


async def find_intruders(page: Page) -> list[str]:
    """The elements of the page, and of frames of the hub in it, that a vector must have made."""
    found: list[str] = []
    for frame in page.frames:
        found += await frame.evaluate(f"() => ({INTRUDERS})()")  # a function itself would get null
    return found
