"""What `pip install .` installs: every file that the hub and the command need, and nothing of the tests."""

import tomllib
from pathlib import Path

from clawbridge import VERSION
from lab import ROOT
from lab.forked import run_forked
from lab.hub_storage import hub_env
from lab.processes import python, run
from tests.repository.tracked import named, shown

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ROOMS = PROJECT["tool"]["mypy"]["packages"]
SHOWN_DOCUMENTS = ("docs/glossary.md", "docs/howto/*.md", "docs/reference/*.md", "docs/topics/*.md")
OF_DEVELOPERS = {"lab", "deploy", "conformance"}


def test_the_wheel_has_every_file_and_runs_from_its_own_folder(tmp_path: Path) -> None:
    built = tmp_path / "site-packages"
    make = "import setuptools; setuptools.setup()"
    options = ["build", "--build-base", str(tmp_path / "build"), "--build-lib", str(built)]
    run(python("-c", make, "--quiet", *options), hub_env({}), within_s=60)
    found = {path.relative_to(built).as_posix() for path in built.rglob("*") if path.is_file()}
    rooms = sorted(set(ROOMS) - OF_DEVELOPERS)
    modules = {shown(path) for path in named("*.py") if path.relative_to(ROOT).parts[0] in rooms}
    pages = {shown(path) for path in named("*") if shown(path).startswith(("templates/", "static/"))}
    documents = {shown(path) for path in named(*SHOWN_DOCUMENTS)}
    data = {shown(path) for path in named("gateway/service/team/data/*.json")}
    assert modules | pages | documents | data == found
    env = {"XDG_DATA_HOME": str(tmp_path / "data"), "DATA_DIR": "", "HOME": str(tmp_path)}
    checked = run_forked(["-m", "clawbridge", "manage", "check"], hub_env(env), folder=built, within_s=60)
    assert checked.returncode == 0, checked.stderr
    assert (tmp_path / "data" / "clawbridge" / "secret_key").exists()
    absent = run_forked(["-m", "clawbridge", "manage", "halt"], hub_env(env), folder=built, within_s=60)
    assert (absent.returncode, "has no hub" in absent.stderr) == (1, True)


def test_the_command_has_the_version_and_the_entry_point_of_the_project() -> None:
    assert PROJECT["project"]["version"] == VERSION
    assert PROJECT["project"]["scripts"] == {"clawbridge": "clawbridge.__main__:main"}
