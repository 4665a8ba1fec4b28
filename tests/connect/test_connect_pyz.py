"""`connect.pyz`: one file that Python alone runs."""

import asyncio
import hashlib
import io
import sys
import tomllib
import zipfile

from connect import packing
from connect.agent import VERSION
from lab import ROOT

BARE = (sys.executable, "-I", "-S")  # Python alone: no site-packages, nothing of this folder


async def test_python_alone_connects_with_it(hub, start, tmp_path):
    file = tmp_path / packing.NAME
    file.write_bytes(packing.archive())
    command = (*BARE, str(file))
    program = await start("--name", "bot", "--exec", "--", "wc", "-w", command=command, cwd=tmp_path)
    visit = await hub.next_visit()
    assert (await visit.welcome(name="bot"))["routingName"] == "bot"
    assert "connected as @bot" in await program.line()
    assert (await visit.answer("three little words")).strip() == "3"


async def test_it_is_small_the_same_each_time_and_has_its_licence(tmp_path):
    made = []
    for name in ("one", "two"):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "connect.packing", str(tmp_path / name), cwd=ROOT
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
    assert {"connect/agent.py", "websockets/LICENSE", "websockets/asyncio/client.py"} <= names
    assert not [name for name in names if name.endswith((".so", ".pyc", ".c"))]
    compile(main, "__main__.py", "exec")
    assert "if sys.version_info < (3, 11):" in main


def test_what_it_carries_of_agnt_is_what_the_import_contract_keeps_pure():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [pure] = [one["source_modules"] for one in contracts if one["name"].startswith("What the connector carries")]
    with zipfile.ZipFile(io.BytesIO(packing.archive())) as pyz:
        files = [name for name in pyz.namelist() if name.startswith(("agnt/", "kit/"))]
    carried = {name.removesuffix(".py").replace("/", ".") for name in files}
    plain = {name for name in carried if not name.endswith(".__init__") and not name.startswith("agnt.client.")}
    assert plain | {"agnt.client"} == set(pure)
    packages = tomllib.loads((ROOT / "connect" / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    assert set(packages) == {"connect", *(name.rpartition(".")[0] for name in carried)}


def test_the_wheel_is_described_as_what_it_is():
    project = tomllib.loads((ROOT / "connect" / "pyproject.toml").read_text())["project"]
    assert (project["name"], project["version"]) == ("clawbridge-connect", VERSION)
    assert project["requires-python"] == ">=" + ".".join(map(str, packing.LEAST_PYTHON))
