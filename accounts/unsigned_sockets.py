"""The sockets of one process whose clients have sent no token yet, counted by address."""

from collections import Counter

from kit.addresses import network_of
from kit.asgi import Scope

PER_ADDRESS = 100  # what waits costs memory: a client of no account must not choose how much


class UnsignedSockets:
    """Counts the sockets of each address that wait for a token, at most `per_address` in this process.

    Behind a trusted proxy the address is the one that the proxy names. Sockets enter that named no token in their
    upgrade; when a token comes, or the socket ends, they leave.
    """

    def __init__(self, per_address: int = PER_ADDRESS) -> None:
        self._per_address = per_address
        self._addresses: dict[object, str] = {}
        self._open: Counter[str] = Counter()

    def enter(self, socket: object, scope: Scope) -> bool:
        """Count a socket; False when its address has as many as one may. Again does nothing."""
        if socket in self._addresses:
            return True
        client = scope.get("client")
        address = network_of(str(client[0]) if client else "")
        if self._open[address] >= self._per_address:
            return False
        self._addresses[socket] = address
        self._open[address] += 1
        return True

    def leave(self, socket: object) -> None:
        """A socket has signed in, or is over. Again does nothing."""
        address = self._addresses.pop(socket, None)
        if address is None:
            return
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]
