"""The files of `deploy/`, read."""

from typing import Any

import yaml

from lab import ROOT

DEPLOY = ROOT / "deploy"
Json = dict[str, Any]


def documents(name: str) -> list[Json]:
    return [one for one in yaml.safe_load_all((DEPLOY / name).read_text()) if one]


def document(name: str) -> Json:
    (one,) = documents(name)
    return one
