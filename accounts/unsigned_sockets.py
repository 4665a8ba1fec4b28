"""The sockets of one process whose clients have sent no token yet, counted by address."""

from collections import Counter

from kit.addresses import network_of
from kit.asgi import Scope

PER_ADDRESS = 100  # a waiting socket costs memory: a client without an account must not choose how much


class UnsignedSockets:
    """Counts the sockets of each address that wait for a token, at most `per_address` in this process.

    Behind a trusted proxy the address is the one that the proxy names. A socket enters if its upgrade names no
    token, and leaves when a token comes or the socket closes.
    """

    def __init__(self, per_address: int = PER_ADDRESS) -> None:
        self._per_address = per_address
        self._addresses: dict[object, str] = {}
        self._open: Counter[str] = Counter()

    def enter(self, socket: object, scope: Scope) -> bool:
        """Count a socket; False when its address has `per_address` already. A second call does nothing."""
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
        """Stop counting a socket, which has signed in or closed. A second call does nothing."""
        address = self._addresses.pop(socket, None)
        if address is None:
            return
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]
