"""Skills as an owner types them: `key: value` lines, each skill from its `id` line on.

A line that begins with two spaces goes on with the value above it. Empty lines count for nothing.
"""

from collections.abc import Sequence

from agents.transcript.pieces import Json

ONE = {"id": "id", "name": "name", "description": "description"}
MANY = {"tag": "tags", "example": "examples", "input": "inputModes", "output": "outputModes"}
MORE = "  "
KEYS = ", ".join([*ONE, *MANY])


class BadLine(ValueError):
    """A line that says nothing of a skill; the text names it."""


def read(text: str) -> list[Json]:
    """The skills of a text, as they are; what they may hold is for others to check.

    Raises:
        BadLine: a line is none of the above, or says again what is said once.
    """
    skills: list[Json] = []
    last = ""
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        if line.startswith(MORE) and last:
            _go_on(skills[-1], last, line.removeprefix(MORE))
        elif line.strip():
            last = _begin(skills, line, number)
    return skills


def write(skills: Sequence[Json]) -> str:
    """The text of these skills."""
    return "\n\n".join("\n".join(_lines(skill)) for skill in skills)


def _begin(skills: list[Json], line: str, number: int) -> str:
    """Take a line with a key of its own; the member it filled."""
    key, colon, value = line.partition(":")
    key, value = key.strip().lower(), value.strip()
    if not colon or key not in ONE | MANY:
        raise BadLine(f"Line {number}: want one of {KEYS}, a colon and a text")
    if key == "id":
        skills.append({})
    elif not skills:
        raise BadLine(f"Line {number}: a skill begins with its id")
    if key in MANY:
        skills[-1].setdefault(MANY[key], []).append(value)
        return MANY[key]
    if key in skills[-1]:
        raise BadLine(f"Line {number}: the skill {skills[-1]['id']} has a {key} already")
    skills[-1][key] = value
    return key


def _go_on(skill: Json, member: str, line: str) -> None:
    if isinstance(skill[member], list):
        skill[member][-1] += f"\n{line}"
    else:
        skill[member] += f"\n{line}"


def _lines(skill: Json) -> list[str]:
    said = [(key, skill[member]) for key, member in ONE.items() if skill.get(member)]
    said += [(key, value) for key, member in MANY.items() for value in skill.get(member, ())]
    return [f"{key}: {value}".replace("\n", f"\n{MORE}") for key, value in said]
