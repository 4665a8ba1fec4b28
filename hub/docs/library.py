"""The documents of `docs/` that the hub shows, read once: their list, and the targets of their links."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path, PurePosixPath
from posixpath import normpath

from django.conf import settings
from django.urls import reverse

from kit.markdown import SECTION_ID, Document, Section, read_document, split_document

ASKING = "Ask agents"
PUBLISHING = "Publish agents"
RUNNING = "Run a hub"
REFERENCE = "Reference"
# In this order; a document without a line here stands at the end of its folder's group.
GROUPS: dict[str, Sequence[str]] = {
    ASKING: (
        "clients",
        *("ask-from-a-shell", "ask-from-curl", "ask-from-python", "ask-from-typescript", "use-from-mcp"),
        *("ask-from-openclaw", "use-as-openai-model", "verify-a-token"),
        "receive-push",
    ),
    PUBLISHING: (
        *("connect-an-agent", "run-a-team", "publish-a-remote-agent", "limit-costs", "work-as-a-group", "alerts"),
        "receive-webhooks",
    ),
    RUNNING: (
        *(
            "deploy",
            "operate",
            "send-the-log-to-a-siem",
            "sign-in-with-github",
            "sign-in-without-github",
            "provide-users-by-scim",
            "serve-through-tailscale",
            "run-on-postgresql",
            "runbook",
        ),
        "capacity",
    ),
    REFERENCE: (
        *(
            "asking",
            "methods",
            "cards",
            "errors",
            "rest",
            "administration",
            "saved-questions",
            "tokens",
            "frames",
            "openclaw-inbound",
        ),
        *("gateway", "limits", "settings", "commands", "metrics", "tracing", "checks", "security", "glossary"),
    ),
}
FOLDERS = {"howto": PUBLISHING, "topics": RUNNING, "reference": REFERENCE}
# Of the hub itself.
FOR_DEVELOPERS = {"bench", "test", "conformance", "mcp-conformance", "faults", "memory", "pages", "visual-system"}
ALONE = ("glossary.md",)


@dataclass(frozen=True)
class DocumentPage:
    """One document. `name`: its file's, without the ending; `path`: below `docs`."""

    name: str
    path: PurePosixPath
    group: str

    @cached_property
    def document(self) -> Document:
        """The rendered document, made at the first request for its page."""
        return read_document(self._text, partial(resolve_link, self.path))

    @property
    def sections(self) -> Sequence[Section]:
        """The sections, each with its heading and text."""
        return split_document(self._text)

    @cached_property
    def title(self) -> str:
        """The heading of the document."""
        return self.sections[0].heading

    @property
    def _text(self) -> str:
        return (docs_folder() / self.path).read_text()

    @property
    def address(self) -> str:
        """The address at which the hub shows the document."""
        return reverse("docs-page", args=[self.name])


def docs_folder() -> Path:
    """The folder of the documents."""
    return Path(settings.BASE_DIR) / "docs"


@cache
def shown_files() -> dict[str, PurePosixPath]:
    """The files that the hub shows, by name, in the order of their groups."""
    folder = docs_folder()
    listed = [path.relative_to(folder) for name in FOLDERS for path in sorted((folder / name).glob("*.md"))]
    found = {path.stem: PurePosixPath(path) for path in [*listed, *map(Path, ALONE)]}
    order = [name for names in GROUPS.values() for name in names]
    shown = [*(name for name in order if name in found), *(name for name in found if name not in order)]
    return {name: found[name] for name in shown if name not in FOR_DEVELOPERS}


@cache
def pages() -> dict[str, DocumentPage]:
    """Every page by its name; the files do not change while the hub runs."""
    group_of = {name: group for group, names in GROUPS.items() for name in names}
    return {
        name: DocumentPage(name, path, group_of.get(name, FOLDERS.get(path.parts[0], REFERENCE)))
        for name, path in shown_files().items()
    }


def groups() -> Iterator[tuple[str, list[DocumentPage]]]:
    """The pages by group."""
    for group in GROUPS:
        yield group, [page for page in pages().values() if page.group == group]


def resolve_link(path: PurePosixPath, link: str) -> str | None:
    """The address to which a link of a file leads; None for a file that the hub does not show."""
    if re.match(r"[a-z]+:", link):
        return link
    file, _, anchor = link.partition("#")
    fragment = f"#{SECTION_ID}{anchor}" if anchor else ""
    if not file:
        return fragment
    name = PurePosixPath(file).stem
    is_shown = shown_files().get(name) == PurePosixPath(normpath(path.parent / file))
    return reverse("docs-page", args=[name]) + fragment if is_shown else None
