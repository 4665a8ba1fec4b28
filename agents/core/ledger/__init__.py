"""The only writer of turns and usage in a process: one thread, one queue, one transaction a batch."""

from agents.core.ledger.thread import Ledger
from agents.core.ledger.work import ExtraWrites

__all__ = ["ExtraWrites", "Ledger"]
