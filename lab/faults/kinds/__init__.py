"""The faults, related ones in one module, and the table of all by name. Each module has a list `FAULTS`."""

from lab.faults.fault import Fault
from lab.faults.kinds import (
    agent_sockets,
    clocks,
    embedded,
    full,
    pauses,
    programs,
    promises,
    receivers,
    replies,
    servers,
)

MODULES = (agent_sockets, clocks, embedded, full, pauses, programs, promises, receivers, replies, servers)
_all = sorted(
    (fault for module in MODULES for fault in module.FAULTS), key=lambda one: (one.name[0], int(one.name[1:]))
)
TABLE: dict[str, Fault] = {fault.name: fault for fault in _all}


def chosen(names: str) -> list[tuple[Fault, int]]:
    """Faults and how often: `short`, `long`, or names with commas between, each perhaps with `=` and a count.

    Raises:
        ValueError: no such fault.
    """
    if names in ("short", "long"):
        counted = [(fault, int(getattr(fault, names))) for fault in TABLE.values()]
        return [(fault, count) for fault, count in counted if count]
    found = []
    for each in names.split(","):
        name, _, count = each.strip().partition("=")
        if name not in TABLE:
            raise ValueError(f"no fault {name!r}: want some of {', '.join(TABLE)}")
        found.append((TABLE[name], int(count) if count else TABLE[name].short or 1))
    return found
