"""`python -m lab.faults.agent_process URL TOKEN NAME`: one echo agent, a process that can be stopped.

The process prints `online SESSION-ID` each time the hub has registered the agent.
"""

import asyncio
import os
import sys
from pathlib import Path

from lab.faults.agents import EchoAgent
from lab.faults.oplog import OpLog


async def main(url: str, token: str, name: str) -> None:
    """Serve until killed; the agent connects again whenever its connection is lost."""
    agent = EchoAgent([url], token, OpLog(Path(os.devnull)), name=name)
    agent.start()
    known = 0
    while True:
        await asyncio.sleep(0.1)
        if agent.connects > known:
            known = agent.connects
            sys.stdout.write(f"online {agent.session_id}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:4]))
