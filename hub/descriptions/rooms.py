"""Everything that Django REST framework does not serve: each room's own table, in one place."""

from a2a_bridge.described import OPERATIONS as A2A
from agents.links.channel.described import OPERATIONS as HOOKS
from agents.links.channel.described import SOCKET as CHANNEL
from hub.descriptions.described import OPERATIONS as HUB
from kit.describe import Operation, Socket
from operators.calls import OPERATIONS as OPERATORS
from operators.frames import SOCKET as CLI

OPERATIONS: tuple[Operation, ...] = (*A2A, *HOOKS, *OPERATORS, *HUB)
SOCKETS: tuple[Socket, ...] = (CHANNEL, CLI)
