"""Every method of every dialect of the bridge, with parameters that are sound."""

from dataclasses import dataclass

from a2a_bridge.wire.dialects.dialect import Description, Operation
from a2a_bridge.wire.dialects.hub import HUB
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.versions import DIALECTS
from kit.ids import unguessable
from lab.callers import Json

ASKS = frozenset({Operation.SEND, Operation.STREAM})
NAMES_NO_TASK = ASKS | {Operation.LIST, Operation.SHOW_CARD}
PUSH_URL = "https://8.8.8.8/hook"  # an address that is public, and is never called


@dataclass(frozen=True)
class DialectRequest:
    """One method of one dialect."""

    dialect: str
    method: str
    operation: Operation

    def __str__(self) -> str:
        return f"{self.dialect} {self.method}"

    @property
    def asks(self) -> bool:
        """Whether it asks the agent something."""
        return self.operation in ASKS

    @property
    def names_a_task(self) -> bool:
        """Whether it is about a task that there is."""
        return self.operation not in NAMES_NO_TASK

    @property
    def headers(self) -> dict[str, str]:
        """How a request says its dialect."""
        header = self.described.header
        return {"A2A-Version": header} if header else {}

    @property
    def described(self) -> Description:
        """What the reference says of its dialect."""
        return next(one.description for one in DIALECTS if one.name == self.dialect)

    def params(self, task_id: str) -> Json:
        """Parameters; `task_id` where it names a task."""
        if self.asks:
            return {"message": {**self.described.message, "messageId": unguessable("m-")}}
        match self.operation:
            case Operation.CREATE_PUSH:
                return {"taskId": task_id, "url": PUSH_URL}
            case Operation.GET_PUSH | Operation.DELETE_PUSH:
                return {"taskId": task_id, "id": "one"}
            case Operation.LIST_PUSH:
                return {"taskId": task_id}
        return {"id": task_id} if self.names_a_task else {}


DIALECT_REQUESTS = [
    DialectRequest(one.name, name, operation) for one in DIALECTS for name, operation in one.methods.items()
]
SEND = DialectRequest(HUB.name, "SendMessage", Operation.SEND)
READ = DialectRequest(HUB.name, "GetTask", Operation.GET)
LIST = DialectRequest(V1.name, "ListTasks", Operation.LIST)
