"""Writes `docs/reference/frameworks.md`: what the users of agent frameworks get, as these tests check it."""

from pathlib import Path

from tests.frameworks.clients import ALL, Framework
from tests.frameworks.scenarios import SCENARIOS

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "frameworks.md"
INTRODUCTION = """# Frameworks: what the users of agent frameworks get

Each framework asks an agent of a hub by its own class for remote agents, unmodified, in the version named here.
Each class is given the agent's address, `PUBLIC_URL/api/a2a/v1/agents/{owner}/{slug}/`; ADK's is given the
address of the card, `.well-known/agent-card.json` below that. [Cards](cards.md#which-address-a-client-wants) lists
other addresses that work. All send a token of the hub as `Authorization: Bearer`.
`python -m tests.frameworks` writes the table; `tests/frameworks` runs each of its cells and checks it.

*yes*: the user gets what the agent said. A number: the user gets something else; the note says why, and what
helps. The tests try all advice except another question or another form of answer. A dash: the framework does not
offer that to its user; the note says what is missing.
"""


def page() -> str:
    titles = ["client", "version", *(one.title for one in SCENARIOS)]
    notes: list[str] = []
    rows = [titles, ["---"] * len(titles), *(_row(one, notes) for one in ALL)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{INTRODUCTION}\n{table}\n\n" + "".join(f"{i}. {note}.\n" for i, note in enumerate(notes, 1))


def _row(framework: Framework, notes: list[str]) -> list[str]:
    cells = []
    for scenario in SCENARIOS:
        fault, lack = framework.faults.get(scenario.name), framework.lacks.get(scenario.name)
        why = fault.why if fault else lack
        if why is not None and why not in notes:
            notes.append(why)
        number = "" if why is None else str(notes.index(why) + 1)
        cells.append(f"\u2013 {number}" if lack else number or "yes")
    return [f"{framework.name}: {framework.uses}", framework.version, *cells]


if __name__ == "__main__":
    PAGE.write_text(page())
