"""The packages that the locks in `requirements` name, with the licences of `requirements/licences.toml`."""

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
REQUIREMENTS = ROOT / "requirements"
LICENCES = REQUIREMENTS / "licences.toml"
PINNED = re.compile(r"([a-z0-9][\w.-]*)==(\S+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})\b")


@dataclass(frozen=True)
class LockedPackage:
    """A package of PyPI at one version. `sha256`: of each file that may be installed."""

    name: str
    version: str
    sha256: tuple[str, ...]


@dataclass(frozen=True)
class Licences:
    """The file of licences. `named`: packages whose licence is not `permitted`, each with why it may stay."""

    permitted: frozenset[str]
    named: dict[str, str]
    by_package: dict[str, str]


def read_lock(path: Path) -> list[LockedPackage]:
    """The packages of a lock that `make lock` wrote."""
    entries = path.read_text().replace("\\\n", " ").splitlines()
    return [
        LockedPackage(match[1], match[2], tuple(HASH.findall(entry)))
        for entry in entries
        if (match := PINNED.match(entry))
    ]


def read_licences(path: Path = LICENCES) -> Licences:
    """The file of licences, without the groups in which the packages stand."""
    read = tomllib.loads(path.read_text())
    by_package = {name: licence for licence, names in read["packages"].items() for name in names.split()}
    return Licences(frozenset(read["permitted"]), read["named"], by_package)
