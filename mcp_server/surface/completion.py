"""Completion of MCP: handles for the prompt `ask`, tasks and artifacts for the addresses of resources."""

from collections.abc import Sequence
from dataclasses import dataclass

import mcp_types as types
from mcp.shared.exceptions import MCPError

from kit.async_db import db_call
from mcp_server.service.artifacts import URI_TEMPLATE, find_latest_task_ids, find_task
from mcp_server.service.calls import ToolCaller, ToolCalls
from mcp_server.service.catalog import find_handles
from mcp_server.surface.endpoint import CALLER_KEY
from mcp_server.surface.prompts import AGENT, ASK, QUESTION
from mcp_server.surface.tool_call import Context, public_errors

MAX_VALUES = 100  # MCP allows no more
TASK, ARTIFACT = "task", "artifact"  # the variables of URI_TEMPLATE


@dataclass(frozen=True, slots=True)
class CompletionHandler:
    """The SDK's request for completion."""

    calls: ToolCalls

    async def complete(self, context: Context, params: types.CompleteRequestParams) -> types.CompleteResult:
        """At most MAX_VALUES values that begin like the argument."""
        caller: ToolCaller = context.request.scope[CALLER_KEY]
        with public_errors():
            values = await self._find(caller, params)
        shown = types.Completion(values=list(values[:MAX_VALUES]), has_more=len(values) > MAX_VALUES)
        return types.CompleteResult(completion=shown)

    async def _find(self, caller: ToolCaller, params: types.CompleteRequestParams) -> Sequence[str]:
        """One value more than are shown, if there are so many.

        Raises:
            MCPError: there is no such argument.
        """
        prefix, given = params.argument.value, (params.context and params.context.arguments) or {}
        ref = params.ref.name if isinstance(params.ref, types.PromptReference) else params.ref.uri
        wanted = (ref, params.argument.name)
        if wanted == (ASK, AGENT):
            return await db_call(find_handles)(caller, prefix, MAX_VALUES + 1)
        if wanted == (URI_TEMPLATE, TASK):
            ids = await db_call(find_latest_task_ids)(caller)
        elif wanted == (URI_TEMPLATE, ARTIFACT):
            task = await find_task(self.calls, caller, given.get(TASK, ""))
            ids = [artifact.id for artifact in task.artifacts] if task is not None else []
        elif wanted == (ASK, QUESTION):
            ids = []
        else:
            raise MCPError(code=types.INVALID_PARAMS, message="no such argument of a prompt or resource template")
        return [one for one in ids if one.startswith(prefix)]
