"""Every locked package has a permitted licence, or is named with the reason why it may stay."""

import json
from collections.abc import Iterator
from email.message import Message
from functools import cache
from importlib import metadata
from itertools import chain
from typing import Any

import pytest
from license_expression import ExpressionError, get_spdx_licensing

from deploy.components import bundled_packages
from deploy.packages import LICENCES, Licences, read_licences, read_lock
from tests.repository.tracked import named, shown

OURS = read_licences(LICENCES)
SPDX = get_spdx_licensing()
CLASSIFIERS = {
    "Apache Software License": {"Apache-2.0"},
    "BSD License": {"BSD-2-Clause", "BSD-3-Clause", "0BSD", "ISC"},
    "GNU Lesser General Public License v3 or later (LGPLv3+)": {"LGPL-3.0-or-later"},
    "ISC License (ISCL)": {"ISC"},
    "MIT License": {"MIT"},
    "Mozilla Public License 2.0 (MPL 2.0)": {"MPL-2.0"},
    "Python Software Foundation License": {"PSF-2.0"},
    "The Unlicense (Unlicense)": {"Unlicense"},
}


def locked() -> Iterator[str]:
    """The packages of all locks; those of npm with `npm:` before the name."""
    for path in named("requirements/*.txt"):
        yield from (package.name for package in read_lock(path))


@cache
def npm_licences() -> dict[str, str]:
    """The licences that the locks of npm have, by package."""
    found: dict[str, str] = {}
    for path in named("requirements/*/package-lock.json"):
        for place, package in json.loads(path.read_text())["packages"].items():
            if place:  # the first is ours
                name = f"npm:{place.rpartition('node_modules/')[2]}"
                found[name] = OURS.by_package.get(name) or package.get("license", "")
    return found


def is_permitted(expression: Any, permitted: frozenset[str]) -> bool:
    """Whether all licences of an expression are permitted, of alternatives one."""
    if isinstance(expression, SPDX.AND):
        return all(is_permitted(one, permitted) for one in expression.args)
    if isinstance(expression, SPDX.OR):
        return any(is_permitted(one, permitted) for one in expression.args)
    return expression.render() in permitted


def problem(name: str, licence: str, rules: Licences) -> str:
    """The flaw of a package's licence; empty if the package is named."""
    if name in rules.named:
        return ""
    if not licence:
        return f"{name}: no licence; write it into {shown(LICENCES)}"
    try:
        expression = SPDX.parse(licence, validate=True)
    except ExpressionError as failure:
        return f"{name}: {licence}: {failure}"
    if not is_permitted(expression, rules.permitted):
        return f"{name}: {licence} is not permitted; name the package in {shown(LICENCES)}, or do without it"
    return ""


def test_every_locked_package_has_a_permitted_licence_or_is_named() -> None:
    from_pypi = ((name, OURS.by_package.get(name, "")) for name in sorted(set(locked())))
    found = [problem(name, licence, OURS) for name, licence in chain(from_pypi, npm_licences().items())]
    assert not [one for one in found if one]


def test_the_file_has_no_package_without_need() -> None:
    bundled = {f"npm:{name}" for name, _ in bundled_packages()}
    assert set(OURS.by_package) <= {*locked(), *npm_licences(), *bundled}
    unnamed = Licences(OURS.permitted, {}, OURS.by_package)
    licences = {**OURS.by_package, **npm_licences()}
    assert all(problem(name, licences[name], unnamed) for name in OURS.named)


@pytest.mark.parametrize(
    ("licence", "is_accepted"),
    [
        ("MIT", True),
        ("MIT AND BSD-3-Clause", True),
        ("GPL-3.0-only OR MIT", True),
        ("", False),
        ("GPL-3.0-only", False),
        ("AGPL-3.0-or-later", False),
        ("LGPL-3.0-only", False),
        ("MPL-2.0", False),
        ("MIT AND GPL-2.0-only", False),
        ("Apache-2.0 WITH LLVM-exception", False),
        ("SEE LICENSE IN LICENSE.md", False),
        ("Proprietary", False),
    ],
)
def test_a_new_package_needs_a_permitted_licence(licence: str, is_accepted: bool) -> None:
    assert (problem("new", licence, OURS) == "") == is_accepted


def test_a_package_that_is_named_is_accepted() -> None:
    rules = Licences(frozenset({"MIT"}), {"new": "tests alone use the package"}, {})
    assert problem("new", "GPL-3.0-only", rules) == ""
    assert problem("other", "GPL-3.0-only", rules)


def declared(package: Message) -> set[str]:
    """The licences that a package itself declares, as far as SPDX knows the words."""
    if expression := package.get("License-Expression"):
        return {str(SPDX.parse(expression))}
    classifiers = [
        one.rpartition(" :: ")[2] for one in package.get_all("Classifier", []) if one.startswith("License")
    ]
    return set().union(*(CLASSIFIERS.get(one, set()) for one in classifiers)) if len(classifiers) == 1 else set()


def test_installed_packages_declare_the_licence_of_the_file() -> None:
    different = {}
    for name in set(locked()):
        try:
            said = declared(metadata.metadata(name))  # type: ignore[arg-type]
        except metadata.PackageNotFoundError:
            continue  # of another environment
        if said and str(SPDX.parse(OURS.by_package[name])) not in said:
            different[name] = (OURS.by_package[name], said)
    assert not different
