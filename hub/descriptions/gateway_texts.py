"""The meaning of the gateway's frames and errors, a sentence each; and the fields of frames that the hub sends.

Tests compare the names with the registry of frame types and the error codes.
"""

from gateway.wire.errors import ErrorCode
from gateway.wire.frame_types import STATUSES, VOTES, Field

RECEIVED: dict[str, str] = {
    "message": "A message to an agent. With `metadata.requiresResponse` it is a turn, and its reply is awaited.",
    "status": "Without content: asks for the statuses of all agents. With `status`: an agent says how it is.",
    "error": "An agent could not answer the message that `metadata.correlationId` names. It is never answered.",
    "event": "Something happened; the gateway passes it on to the subscribers of its channel.",
    "handshake": "`advertise`: what the client takes. Again replaces what it said before.",
    "discovery": "Asks for the agents that the client can find, for one of them, or for services.",
    "subscribe": "Asks for the frames of a channel, about all agents or those that `agents` names.",
    "unsubscribe": "Ends a subscription, wholly or for some agents.",
    "ping": "Asks for a `pong`.",
    "pong": "Answers a `ping`.",
    "workspace": "Asks for workspaces of agents.",
    "auth": "Signs in with a token.",
    "disconnect": "Ends the connection; the gateway closes it.",
    "proposal": "Puts a proposal to the voters of the team.",
    "vote": "Votes on a proposal. A later vote replaces it as long as the proposal is open.",
    "request": "Calls a service of the gateway.",
    "response": "Answers a message or a request by its `metadata.correlationId`.",
    "broadcast": "Sends a message to all connected agents of the team.",
}
_ACTION = Field("content.action", "a string", is_required=True)
_PROPOSAL_ID = Field("content.proposalId", "a string", is_required=True)
SENT: dict[str, tuple[str, tuple[Field, ...]]] = {
    "message": (
        "A message to an agent, or the reply to a message of the client.",
        (
            Field("content.role", "a string", is_required=True),
            Field("content.content", "a string or an object", is_required=True),
        ),
    ),
    "status": (
        "The statuses of agents, or the new status of one.",
        (Field("content.agent", "a string"), Field("content.status", "a string", legal=STATUSES)),
    ),
    "error": (
        "A frame was refused, or a message was not answered; its ids are in the metadata.",
        (Field("error", "a string", is_required=True), Field("content", "an object", is_required=True)),
    ),
    "event": (
        "Something happened: to a message of the client, or in a channel that it subscribed to.",
        (Field("event", "a string"), Field("content.event", "a string")),
    ),
    "handshake": (
        "Acknowledges the handshake, and names the agents that the client may send to.",
        (
            _ACTION,
            Field("content.clientId", "a string", is_required=True),
            Field("content.availableAgents", "an array of strings", is_required=True),
            Field("content.protocolVersion", "a string", is_required=True),
        ),
    ),
    "discovery": ("The agents or services that were asked for.", ()),
    "subscribe": ("Acknowledges a subscription.", ()),
    "unsubscribe": ("Acknowledges the end of a subscription.", ()),
    "pong": ("Answers a `ping`, with what it said of its sender.", (Field("content.heartbeat", "an object"),)),
    "workspace": ("The workspaces that were asked for.", ()),
    "auth-response": (
        "Whether the token was taken.",
        (
            Field("content.status", "a string", is_required=True, legal=frozenset({"authenticated", "rejected"})),
            Field("content.agent", "a string"),
            Field("content.role", "a string"),
        ),
    ),
    "disconnect": (
        "The last frame before the gateway closes the connection.",
        (Field("content.reason", "a string", is_required=True), Field("content.message", "a string")),
    ),
    "proposal": (
        "A proposal for a voter, or for the agent that breaks its tie.",
        (
            _PROPOSAL_ID,
            Field("content.proposal", "a string", is_required=True),
            Field("content.reasoning", "a string"),
            Field("content.deadline", "a number", is_required=True),
        ),
    ),
    "vote": (
        "A vote, for subscribers of the proposal.",
        (_PROPOSAL_ID, Field("content.vote", "a string", is_required=True, legal=VOTES)),
    ),
    "decision": (
        "The decision on a proposal, once.",
        (
            _PROPOSAL_ID,
            Field("content.result", "a string", is_required=True, legal=frozenset({"approved", "rejected"})),
            Field("content.votes", "an object", is_required=True),
            Field("content.consensus", "a boolean", is_required=True),
            Field("content.missing", "an array of strings"),
            Field("content.unanimous", "a boolean"),
        ),
    ),
    "response": (
        "The result of a service, or why there is none.",
        (Field("content.result", ""), Field("content.error", "an object")),
    ),
    "broadcast": ("A message to all connected agents of the team.", ()),
}
ERRORS: dict[ErrorCode, str] = {
    ErrorCode.CONNECTION_REFUSED: "the hub takes no more connections of this user or agent",
    ErrorCode.CONNECTION_TIMEOUT: "no token came in time",
    ErrorCode.CONNECTION_RESET: "the other end is gone",
    ErrorCode.PROTOCOL_ERROR: "a binary frame, a frame over 1 MiB, another version, or too many errors",
    ErrorCode.RATE_LIMITED: "too many frames or messages; retryAfterMs says how long to wait",
    ErrorCode.INVALID_JSON: "the frame is not one JSON object",
    ErrorCode.MISSING_FIELD: "a required field is missing",
    ErrorCode.INVALID_TYPE: "a field has a value of another kind",
    ErrorCode.UNKNOWN_TYPE: "there is no such type, or this hub does not serve it",
    ErrorCode.INVALID_CONTENT: "a field has a value that is not allowed here",
    ErrorCode.AGENT_NOT_FOUND: "there is no such agent, or it is not open to the sender",
    ErrorCode.AGENT_OFFLINE: "the agent is not connected, and the message does not wait",
    ErrorCode.AGENT_BUSY: "the agent works for another caller, and the message does not wait",
    ErrorCode.AGENT_ERROR: "the agent failed, or did not answer in time",
    ErrorCode.SESSION_NOT_FOUND: "there is no such session",
    ErrorCode.SESSION_EXPIRED: "the session takes no more entries",
    ErrorCode.SESSION_LOCKED: "another writer has the session",
    ErrorCode.SESSION_CORRUPT: "the session cannot be read",
    ErrorCode.AUTH_REQUIRED: "sign in first",
    ErrorCode.AUTH_FAILED: "the token or the signature is not valid",
    ErrorCode.TOKEN_EXPIRED: "the token has expired",
    ErrorCode.PERMISSION_DENIED: "the sender may not do this",
}
