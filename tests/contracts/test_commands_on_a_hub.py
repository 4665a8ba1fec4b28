"""Commands that work on a hub leave nothing behind where there is none."""

from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import get_commands

from hub.data_dir import COMMANDS_ON_A_HUB, check_hub_exists
from lab.hub_storage import run_command

WITHOUT_A_HUB = {"serve", "runserver", "connect", "agnt_sign"}


def test_a_token_without_a_hub_leaves_nothing(tmp_path: Path) -> None:
    done = run_command({"DATA_DIR": str(tmp_path / "data")}, "mint_token", "--login", "alice", "--kind", "app")
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.startswith(f"DATA_DIR={tmp_path / 'data'} has no hub: ")
    assert list(tmp_path.iterdir()) == []


def test_every_command_of_the_hub_is_decided() -> None:
    assert {
        name for name, app in get_commands().items() if app in ("hub", "agnt")
    } == COMMANDS_ON_A_HUB | WITHOUT_A_HUB


@pytest.mark.parametrize("arguments", [[], ["migrate"], ["serve"], ["mint_token", "--help"]])
def test_others_need_none(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    check_hub_exists(arguments, tmp_path)


def test_a_database_elsewhere_is_a_hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA_DIR", str(tmp_path))
    monkeypatch.setenv("DATABASE_URL", "postgres://hub@db/hub")
    check_hub_exists(["halt"], tmp_path)
    monkeypatch.delenv("DATABASE_URL")
    with pytest.raises(ImproperlyConfigured):
        check_hub_exists(["halt"], tmp_path)
    (tmp_path / "hub.sqlite3").touch()
    check_hub_exists(["halt"], tmp_path)
