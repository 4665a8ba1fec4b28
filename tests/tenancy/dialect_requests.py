"""Every method of every dialect of the bridge, and every address of HTTP+JSON, with parameters that are sound."""

from dataclasses import dataclass

from a2a_bridge.surface.addresses import ADDRESSES
from a2a_bridge.wire.dialects.dialect import Dialect, Operation
from a2a_bridge.wire.dialects.hub import HUB
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.versions import DIALECTS
from kit.ids import unguessable
from lab.callers import Json, envelope, question
from tests.tenancy.web import Answer, Web

ASKS = frozenset({Operation.SEND, Operation.STREAM})
NAMES_NO_TASK = ASKS | {Operation.LIST, Operation.SHOW_CARD}
PUSH_URL = "https://8.8.8.8/hook"  # an address that is public, and is never called


@dataclass(frozen=True)
class DialectRequest:
    """One method of one dialect."""

    dialect: str
    method: str
    operation: Operation
    no_task = "-32001"
    no_scope = "-32017"

    def __str__(self) -> str:
        return f"{self.dialect} {self.method}"

    @property
    def asks(self) -> bool:
        """True if the request asks the agent something."""
        return self.operation in ASKS

    @property
    def names_a_task(self) -> bool:
        """True if the request names a task that exists."""
        return self.operation not in NAMES_NO_TASK

    def send(self, web: Web, handle: str, task_id: str, headers: dict[str, str]) -> Answer:
        """The answer about an agent, and `task_id` where it names a task."""
        header = self.spoken.description.header  # how a request says its dialect
        body = envelope(self.method, self.params(task_id))
        spoken = {"A2A-Version": header} if header else {}
        return web.post(f"/api/a2a/v1/agents/{handle}", json=body, headers=spoken | headers)

    def reaches(self, answer: Answer) -> bool:
        """True if the agent, which is offline, was found."""
        return answer.status_code == 200 and (not self.asks or "agent channel offline" in answer.text)

    @property
    def spoken(self) -> Dialect:
        """The dialect of the request."""
        return next(one for one in DIALECTS if one.name == self.dialect)

    def params(self, task_id: str) -> Json:
        """Parameters; `task_id` where it names a task."""
        if self.asks:
            return {"message": {**self.spoken.sample_message, "messageId": unguessable("m-")}}
        match self.operation:
            case Operation.CREATE_PUSH:
                return {"taskId": task_id, "url": PUSH_URL}
            case Operation.GET_PUSH | Operation.DELETE_PUSH:
                return {"taskId": task_id, "id": "one"}
            case Operation.LIST_PUSH:
                return {"taskId": task_id}
            case Operation.RATE:
                return {"id": task_id, "rating": "up"}
        return {"id": task_id} if self.names_a_task else {}


@dataclass(frozen=True)
class AddressRequest:
    """One address of HTTP+JSON."""

    verb: str
    path: str
    no_task = "TASK_NOT_FOUND"
    no_scope = "INSUFFICIENT_SCOPE"

    def __str__(self) -> str:
        return f"{self.verb} {self.path}"

    @property
    def asks(self) -> bool:
        """True if the request asks the agent something."""
        return self.path in ("message:send", "message:stream")

    @property
    def rates(self) -> bool:
        """True if the request rates an answer."""
        return self.path.endswith(":rate")

    @property
    def names_a_task(self) -> bool:
        """True if the request names a task that exists."""
        return self.path.startswith("tasks/")

    def send(self, web: Web, handle: str, task_id: str, headers: dict[str, str]) -> Answer:
        """The answer about an agent, and `task_id` where it names a task; a push address is always `p1`."""
        path = self.path.format(id="p1" if "taskId" in self.path else task_id, taskId=task_id)
        sent = question("what's up?") if self.asks else {"rating": "up"} if self.rates else {"url": PUSH_URL}
        body = {"json": sent} if self.verb == "POST" else {}
        headers = {"A2A-Version": "1.0"} | headers
        return web.request(self.verb, f"/api/a2a/v1/agents/{handle}/{path}", headers=headers, **body)

    def reaches(self, answer: Answer) -> bool:
        """True if the agent was found."""
        return "AGENT_NOT_FOUND" not in answer.text


AgentRequest = DialectRequest | AddressRequest
DIALECT_REQUESTS = [
    DialectRequest(one.name, method.name, method.operation) for one in DIALECTS for method in one.methods.values()
]
SEND = DialectRequest(HUB.name, "SendMessage", Operation.SEND)
ADDRESS_REQUESTS = [AddressRequest(verb, one.path) for one in ADDRESSES for verb in one.calls]
AGENT_REQUESTS: list[AgentRequest] = [*DIALECT_REQUESTS, *ADDRESS_REQUESTS]
CREATE_PUSH = AddressRequest("POST", "tasks/{taskId}/pushNotificationConfigs")
LIST_PUSHES = AddressRequest("GET", CREATE_PUSH.path)
LIST_TASKS = AddressRequest("GET", "tasks")
READ = DialectRequest(HUB.name, "GetTask", Operation.GET)
LIST = DialectRequest(V1.name, "ListTasks", Operation.LIST)
