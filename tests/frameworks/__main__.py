"""Writes `docs/reference/clients.md`: what the users of agent frameworks get, as these tests check it."""

from pathlib import Path

from tests.frameworks.clients import ALL, SCENARIOS, Framework

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "clients.md"
INTRODUCTION = """# Clients: what the users of agent frameworks get

Each framework asks an agent of a hub by its own class for remote agents, unmodified, in the version named here.
`python -m tests.frameworks` writes the table; `tests/frameworks` runs each of its cells and checks it.

*yes*: the user gets what the agent said. A number: the user gets something else; the note says why, and what
should help. What helps was read in the framework's code, not tried. [Cards](cards.md#which-address-a-client-wants)
says which address each is given.
"""


def page() -> str:
    """The whole page."""
    titles = ["client", "version", *(one.title for one in SCENARIOS)]
    notes: list[str] = []
    rows = [titles, ["---"] * len(titles), *(_row(one, notes) for one in ALL)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return f"{INTRODUCTION}\n{table}\n\n" + "".join(f"{i}. {note}.\n" for i, note in enumerate(notes, 1))


def _row(framework: Framework, notes: list[str]) -> list[str]:
    cells = []
    for scenario in SCENARIOS:
        fault = framework.faults.get(scenario.name)
        if fault is not None and fault.why not in notes:
            notes.append(fault.why)
        cells.append("yes" if fault is None else str(notes.index(fault.why) + 1))
    return [f"{framework.name}: {framework.uses}", framework.version, *cells]


if __name__ == "__main__":
    PAGE.write_text(page())
