"""The surface in the hub's public description."""

from typing import Annotated

from msgspec import Meta

from kit.describe import CALLER, COMMON_FAILURES, DescribedAnswer, DescribedOperation, Parameter, describe_failures
from openai_api.service.catalog import MAX_LISTED
from openai_api.surface.endpoint import COMPLETIONS_PATH, CONVERSATION, MODELS_PATH, RESPONSES_PATH
from openai_api.wire.messages import ChatRequest, ResponseRequest
from openai_api.wire.shapes import ChatCompletion, ChatError, Chunk, Model, ModelPage, Response, ResponseEvent

_OF_FORM = {
    401: "No live token came with it: `invalid_api_key`.",
    403: "The token is not for this, or the agent's owner does not let you ask.",
    503: "The agent is offline (`agent_offline`), or the hub takes no requests right now.",
}
_NO_AGENT = "There is no such agent for this caller: `model_not_found`."
_OF_ASK = describe_failures(
    ChatError,
    {
        **COMMON_FAILURES,
        **_OF_FORM,
        400: "The body is not sound; `param` names the field.",
        404: _NO_AGENT,
        422: "The agent refused the question, or the Idempotency-Key came with another body.",
        424: "The agent was asked and failed, did not answer in time, or its reply has not the `response_format`.",
        429: "The agent is busy, a budget is spent or you ask too fast; Retry-After says how long.",
        504: "The hub ends a stream of this age.",
    },
)

OPERATIONS = (
    DescribedOperation(
        method="post",
        path=COMPLETIONS_PATH,
        name="createChatCompletion",
        summary="Ask an agent as a model of OpenAI's chat API.",
        text="The messages become one ask. Fields that are not named here are accepted and have no effect."
        f" With the header {CONVERSATION}, or `user`, the agent goes on with that conversation.",
        tag="models",
        security=CALLER,
        request=ChatRequest,
        adds_errors=False,
        answers={200: DescribedAnswer(shape=ChatCompletion, streams=Chunk, text="The answer."), **_OF_ASK},
    ),
    DescribedOperation(
        method="post",
        path=RESPONSES_PATH,
        name="createResponse",
        summary="Ask an agent as a model of OpenAI's responses API.",
        text="The input becomes one ask. Fields that are not named here are accepted and have no effect."
        f" With `previous_response_id`, `conversation` or the header {CONVERSATION} the agent goes on with that"
        " conversation.",
        tag="models",
        security=CALLER,
        request=ResponseRequest,
        adds_errors=False,
        answers={200: DescribedAnswer(shape=Response, streams=ResponseEvent, text="The answer."), **_OF_ASK},
    ),
    DescribedOperation(
        method="get",
        path=f"{RESPONSES_PATH}/{{response_id}}",
        name="getResponse",
        summary="A response that you got, or a completion, while its task is kept.",
        tag="models",
        security=CALLER,
        adds_errors=False,
        answers={
            200: Response,
            **describe_failures(
                ChatError,
                {404: "You have no such response, or its task is not kept: `response_not_found`."} | _OF_FORM,
            ),
        },
    ),
    DescribedOperation(
        method="get",
        path=MODELS_PATH,
        name="listModels",
        summary="The agents that you may ask, as models of OpenAI's API.",
        tag="models",
        security=CALLER,
        parameters=(
            Parameter(name="limit", shape=Annotated[int, Meta(ge=1, le=MAX_LISTED)], text=f"default {MAX_LISTED}"),
            Parameter(name="after", shape=str, text="the last id of the page before"),
        ),
        adds_errors=False,
        answers={
            200: ModelPage,
            **describe_failures(
                ChatError, {400: "The query is not sound; `param` names the parameter."} | _OF_FORM
            ),
        },
    ),
    DescribedOperation(
        method="get",
        path=f"{MODELS_PATH}/{{model}}",
        name="getModel",
        summary="One of them, by its id.",
        text="The slashes of the id may come as they are, or as %2F.",
        tag="models",
        security=CALLER,
        adds_errors=False,
        answers={
            200: Model,
            **describe_failures(ChatError, {404: _NO_AGENT} | _OF_FORM),
        },
    ),
)
