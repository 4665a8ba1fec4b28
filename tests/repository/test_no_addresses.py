"""The machine decides where packages come from: no file of ours names a registry or a download."""

import json
import re

from tests.repository.tracked import named, shown, tracked_files

# Written in halves, so that this file does not name them itself.
REGISTRIES = [
    "py" + "pi.org",
    "files.python" + "hosted.org",
    "registry.npm" + "js.org",
    "registry.yarn" + "pkg.com",
    "proxy.go" + "lang.org",
    "crates" + ".io",
    "rubygems" + ".org",
    "deb.deb" + "ian.org",
    "archive.ub" + "untu.com",
    "hugging" + "face.co",
    "docker" + ".io/",
    "gh" + "cr.io",
]
DOWNLOADS = re.compile(
    r"https?://\S+\.(?:whl|tar\.gz|tgz|zip|deb|rpm|exe|gguf|safetensors)\b|/simple/?(?=[\s\"'])"
)
INDEX_OPTION = re.compile(
    r"(?:^|\s)(?:-i|-f|--index-url|--extra-index-url|--find-links|--trusted-host|--no-index)(?=[\s=]|$)"
)
PINNED = re.compile(r"[a-z0-9][\w.-]*==\S+")
LOCKS = named("requirements/*.txt")
NPM_LOCKS = named("requirements/*/package-lock.json")


def test_no_file_names_a_registry_or_a_download() -> None:
    found: list[str] = []
    for path in tracked_files():
        text = path.read_bytes().decode(errors="replace")
        found += [f"{shown(path)}: {address}" for address in REGISTRIES if address in text]
        found += [f"{shown(path)}: {match[0]}" for match in DOWNLOADS.finditer(text)]
    assert not found


def test_there_are_locks() -> None:
    assert {"base.txt", "stripe.txt", "dev.txt", "sdk-1.txt", "sdk-0.3.txt"} <= {path.name for path in LOCKS}
    assert {
        *("sdk-js-1", "sdk-js-0.3", "sdk-js-mcp", "sdk-js-openai", "sdk-js-gateway", "sdk-js-conformance"),
        "sdk-js-coding-agents",
    } <= {path.parent.name for path in NPM_LOCKS}


def test_every_requirement_is_pinned_and_hashed() -> None:
    for path in LOCKS:
        entries = path.read_text().replace("\\\n", " ").splitlines()
        for entry in (line.strip() for line in entries):
            if entry and not entry.startswith("#"):
                assert PINNED.match(entry), entry
                assert re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry), entry


def test_every_npm_package_is_pinned_and_hashed_and_comes_from_nowhere() -> None:
    for path in NPM_LOCKS:
        packages = json.loads(path.read_text())["packages"]
        for name, package in packages.items():
            if name:  # the first is ours
                assert package["version"], name
                assert package["integrity"].startswith("sha512-"), name
                assert "resolved" not in package, name


def test_no_requirements_file_chooses_an_index() -> None:
    for path in named("requirements/*"):
        chosen = [line for line in path.read_text().splitlines() if INDEX_OPTION.search(line) or "://" in line]
        assert not chosen, path
