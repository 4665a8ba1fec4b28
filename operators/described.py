"""This room for the hub's public descriptions: its calls, and `/cli`."""

from kit.describe import CALLER, Answer, ErrorBody, Operation, Parameter, Socket, Uuid
from operators.answers import ProbeAnswer, PromptSent, RouteAnswer
from operators.bodies import ProbeBody, PromptBody, RouteBody
from operators.frames import FROM_OPERATOR, TO_OPERATOR


def _error(text: str) -> Answer:
    return Answer(shape=ErrorBody, text=text)


REFUSALS = {
    403: _error("Your role does not reach, the owner blocks you, or the cookie came from another site."),
    408: _error("The body did not come in time."),
    409: _error("It is offline, busy, archived, ambiguous or at its cap. Nothing was sent."),
    429: _error("Its budget is spent, or you ask too fast: Retry-After says when to come back. Nothing was sent."),
    503: _error("The hub takes no questions right now; Retry-After says when to come back."),
}

OPERATIONS = (
    Operation(
        method="post",
        path="/api/v1/sessions/{public_id}/prompt",
        parameters=[Parameter(name="public_id", shape=Uuid, place="path")],
        name="promptSession",
        summary="Prompt a session; the reply comes as an event.",
        text="Takes the role prompter. A text that begins with `@owner/slug` goes there instead.",
        tag="sessions",
        request=PromptBody,
        answers={200: Answer(shape=PromptSent, text="It is on its way."), **REFUSALS},
    ),
    Operation(
        method="post",
        path="/api/v1/peers/{peer}/route",
        name="routeToPeer",
        summary="Prompt a session or a published agent by name, and with `ask` wait for the reply.",
        text="`peer` is `slug`, `@slug`, `owner/slug` or `@owner/slug`; its slash may be encoded or not.",
        tag="peers",
        request=RouteBody,
        answers={
            200: Answer(shape=RouteAnswer, text="The reply; or, in time, none."),
            **REFUSALS,
            502: _error("It was sent, or may have been, and failed."),
        },
    ),
    Operation(
        method="post",
        path="/api/v1/peers/probe",
        name="probePeers",
        summary="Tell many sessions the same.",
        tag="peers",
        request=ProbeBody,
        answers={200: Answer(shape=ProbeAnswer, text="Whom it was sent to, and whom not."), **REFUSALS},
    ),
)

SOCKET = Socket(
    path="/cli",
    summary="An operator watches sessions, prompts them and decides what they ask leave for.",
    security=CALLER,
    from_client=FROM_OPERATOR.values(),
    to_client=TO_OPERATOR,
)
