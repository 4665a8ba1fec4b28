"""`connect.pyz`: one file that Python alone runs."""

import asyncio
import hashlib
import sys
import zipfile

from clawbridge.connect import packing
from lab import ROOT


async def test_python_alone_connects_with_it(hub, start, tmp_path, pyz):
    program = await start("--name", "bot", "--exec", "--", "wc", "-w", command=pyz, cwd=tmp_path)
    visit = await hub.next_visit()
    assert (await visit.welcome(name="bot"))["routingName"] == "bot"
    assert "connected as @bot" in await program.line()
    assert (await visit.answer("three little words")).strip() == "3"


async def test_it_is_small_the_same_each_time_and_has_its_licence(tmp_path):
    made = []
    for name in ("one", "two"):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "clawbridge.connect.packing", str(tmp_path / name), cwd=ROOT
        )
        assert await process.wait() == 0
        made.append((tmp_path / name / packing.NAME).read_bytes())
    assert made[0] == made[1] == packing.archive()
    assert len(made[0]) < 550_000
    told = (tmp_path / "one" / f"{packing.NAME}.sha256").read_text()
    assert told == f"{hashlib.sha256(made[0]).hexdigest()}  connect.pyz\n"
    with zipfile.ZipFile(tmp_path / "one" / packing.NAME) as pyz:
        names = set(pyz.namelist())
        main = pyz.read("__main__.py").decode()
    assert {"clawbridge/connect/agent.py", "websockets/LICENSE", "websockets/asyncio/client.py"} <= names
    assert not [name for name in names if name.endswith((".so", ".pyc", ".c"))]
    compile(main, "__main__.py", "exec")
    assert "if sys.version_info < (3, 11):" in main
