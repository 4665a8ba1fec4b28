"""The content of the two wheels: `clawbridge`, a small client, and `clawbridge-hub`, each as one package."""

import os
import sys
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

from clawbridge import VERSION
from lab import ROOT
from lab.hub_storage import hub_env
from lab.processes import ProgramError, python, run
from tests.repository.tracked import named, shown

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = set(PROJECT["tool"]["mypy"]["packages"]) - {"lab", "deploy", "conformance"}
SHOWN_DOCUMENTS = ("docs/glossary.md", "docs/howto/*.md", "docs/reference/*.md", "docs/topics/*.md")
MAX_DEPENDENCIES = 5
STRANGER = "agents = 'those of another distribution'\n"


@dataclass(frozen=True)
class Wheel:
    """A built wheel: its file, the files that it installs, its description and its commands."""

    file: Path
    files: frozenset[str]
    metadata: Message
    commands: str


def build(folder: Path, into: Path) -> Wheel:
    run(python("-m", "hatchling", "build", "-t", "wheel", "-d", str(into)), os.environ, folder=folder, within_s=60)
    [file] = into.iterdir()
    with zipfile.ZipFile(file) as wheel:
        files = frozenset(wheel.namelist())
        [about] = {name.partition("/")[0] for name in files if ".dist-info/" in name}
        metadata = Parser().parsestr(wheel.read(f"{about}/METADATA").decode())
        commands = wheel.read(f"{about}/entry_points.txt").decode()
    return Wheel(file, frozenset(name for name in files if not name.startswith(about)), metadata, commands)


@pytest.fixture(scope="module")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    return build(ROOT / "clawbridge", tmp_path_factory.mktemp("client"))


@pytest.fixture(scope="module")
def hub_wheel(tmp_path_factory: pytest.TempPathFactory) -> Wheel:
    return build(ROOT, tmp_path_factory.mktemp("hub"))


def modules(rooms: Iterable[str]) -> set[str]:
    """The tracked modules of packages."""
    return {shown(path) for path in named("*.py") if path.relative_to(ROOT).parts[0] in set(rooms)}


def dependencies(wheel: Wheel, extra: str) -> set[str]:
    """The dependencies of the wheel, or those of one extra, by name."""
    needed = [one.partition(";") for one in wheel.metadata.get_all("Requires-Dist", [])]
    return {name.partition(">")[0] for name, _, when in needed if extra in when and bool(extra) == bool(when)}


def test_the_client_is_one_package_with_few_dependencies(client_wheel: Wheel) -> None:
    assert client_wheel.files == modules({"clawbridge"}) | {"clawbridge/py.typed"}
    assert len(dependencies(client_wheel, "")) <= MAX_DEPENDENCIES
    assert not dependencies(client_wheel, "") & dependencies(client_wheel, "mcp")
    assert (client_wheel.metadata["Name"], client_wheel.metadata["Version"]) == ("clawbridge", VERSION)
    assert client_wheel.commands.split() == ["[console_scripts]", "clawbridge", "=", "clawbridge.__main__:main"]


def test_the_hub_is_one_package_with_the_folders_of_the_checkout(hub_wheel: Wheel) -> None:
    pages = {shown(path) for path in named("*") if shown(path).startswith(("templates/", "static/"))}
    documents = {shown(path) for path in named(*SHOWN_DOCUMENTS)}
    data = {shown(path) for path in named("gateway/service/data/*.json")} | {"clawbridge/py.typed"}
    own = {"hub/wheel/__init__.py", "hub/wheel/__main__.py"}
    wanted = (modules(ROOMS) | pages | documents | data) - own | {"__init__.py", "__main__.py"}
    assert hub_wheel.files == {f"clawbridge_hub/{name}" for name in wanted}
    assert (hub_wheel.metadata["Name"], hub_wheel.metadata["Version"]) == ("clawbridge-hub", VERSION)
    command = "[console_scripts] clawbridge-hub = clawbridge_hub.__main__:main"
    assert hub_wheel.commands.split() == command.split()


def stranger(folder: Path) -> Path:
    """A wheel of another distribution, with a package `agents` as `openai-agents` has one."""
    file, about = folder / "stranger-1.0-py3-none-any.whl", "stranger-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as wheel:
        wheel.writestr("agents/__init__.py", STRANGER)
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    return file


def test_both_run_in_one_environment_beside_a_package_named_agents(
    client_wheel: Wheel, hub_wheel: Wheel, tmp_path: Path
) -> None:
    env = hub_env({"XDG_DATA_HOME": str(tmp_path / "data"), "DATA_DIR": "", "HOME": str(tmp_path)})
    venv.create(tmp_path / "venv", with_pip=False)
    programs = tmp_path / "venv" / "bin"
    [packages] = (tmp_path / "venv" / "lib").glob("*/site-packages")
    ours = (one for one in sys.path if one.endswith("site-packages"))
    (packages / "dependencies.pth").write_text("\n".join(ours))

    def install(*wheels: Path) -> None:
        options = ["--python", str(programs / "python"), "install", "--no-index", "--no-deps", "--no-compile"]
        run(python("-m", "pip", *options, *map(str, wheels)), env, within_s=60)

    def say(*command: str) -> str:
        return run([str(programs / command[0]), *command[1:]], env, folder=tmp_path, within_s=60).strip()

    install(client_wheel.file, stranger(tmp_path))
    assert say("clawbridge", "--version") == f"clawbridge {VERSION}"
    with pytest.raises(ProgramError, match="no hub is installed"):
        say("clawbridge", "serve")
    install(hub_wheel.file)
    assert {path.name for path in packages.iterdir() if path.suffix != ".dist-info"} == {
        "agents", "clawbridge", "clawbridge_hub", "dependencies.pth",
    }  # fmt: skip
    assert say("clawbridge-hub", "--version") == VERSION
    assert say("clawbridge-hub", "check") == "System check identified no issues (0 silenced)."
    assert (tmp_path / "data" / "clawbridge" / "secret_key").exists()
    with pytest.raises(ProgramError, match="has no hub"):
        say("clawbridge", "manage", "halt")
    assert say("python", "-c", "import agents; print(agents.agents)") in STRANGER
