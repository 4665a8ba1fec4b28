"""Python's programs that speak OpenAI's API: `openai`, LangChain, litellm and the command `llm`."""

import json
from pathlib import Path

import pytest

from lab.agents import Echo, TaskPeer, online
from lab.hub_process import HubProcess
from tests.clients.running import PROGRAMS, environment, run

CLIENTS = ("openai", "langchain", "litellm")


@pytest.mark.deep
async def test_clients_answer_and_repeat_no_question_that_an_agent_failed(
    embedded_hub: HubProcess, tmp_path: Path
) -> None:
    python = await environment("python-openai") / "bin" / "python"
    async with online(embedded_hub, TaskPeer) as agent:
        where = (f"{embedded_hub.url}/v1", embedded_hub.mint("ann", "app"), f"agent/{agent.handle}")
        program = PROGRAMS / "openai_clients.py"
        ended = await run(python, program, *where, cwd=tmp_path, LITELLM_LOCAL_MODEL_COST_MAP="True")
        assert ended.code == 0, ended.errors
        seen = json.loads(ended.output.splitlines()[-1])
        assert "".join(seen["pieces"]) == "onetwo"
        for name in CLIENTS:
            assert seen[name]["answer"] == "well"
            assert seen[name]["failure"]["status"] == 424, seen[name]
            assert "no disk" in seen[name]["failure"]["text"]
        assert len(agent.prompts) == 1 + 2 * len(CLIENTS)


@pytest.mark.deep
async def test_llm_asks_whole_and_streaming_and_keeps_the_usage(embedded_hub: HubProcess, tmp_path: Path) -> None:
    llm = await environment("python-openai") / "bin" / "llm"
    home = {"LLM_USER_PATH": str(tmp_path)}
    async with online(embedded_hub, Echo) as agent:
        model = {"model_id": "bot", "model_name": f"agent/{agent.handle}", "api_base": f"{embedded_hub.url}/v1"}
        (tmp_path / "extra-openai-models.yaml").write_text(json.dumps([model | {"api_key_name": "hub"}]))
        token = embedded_hub.mint("ann", "app")
        await run(llm, "keys", "set", "hub", "--value", token, cwd=tmp_path, **home)
        for options in (("--no-stream",), ()):
            ended = await run(llm, "-m", "bot", *options, "hello", cwd=tmp_path, **home)
            assert (ended.code, ended.output) == (0, "echo: hello\n"), ended.errors
        logged = json.loads((await run(llm, "logs", "-n", "2", "--json", cwd=tmp_path, **home)).output)
        assert [one["output_tokens"] for one in logged] == [3, 3]
