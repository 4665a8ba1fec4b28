"""Earlier releases of the hub, as folders with their code."""

import io
import subprocess
import tarfile
from pathlib import Path

import pytest

from lab import ROOT

V0_1_0 = "ed470c17"  # the commit of the tag v0.1.0


def check_out(commit: str, folder: Path) -> Path:
    """Write the files of a commit into a folder, and return it. Skip the test in a clone without the commit."""
    archive = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"the commit {commit} is not in this clone: it is shallow, or no git")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder
