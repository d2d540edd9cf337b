"""Git on the host runs nothing that a repository names, whoever prepared it."""

import subprocess
from pathlib import Path

import pytest

from gametape.desk.feedback import patch_survival
from gametape.desk.goals.branch import head_of
from gametape.desk.host_git import HostGit

_PATCH = f"""\
diff --git a/a.py b/a.py
index {"1" * 40}..{"2" * 40} 100644
--- a/a.py
+++ b/a.py
@@ -1 +1 @@
-1
+2
"""


@pytest.fixture
def trapped(tmp_path: Path) -> Path:
    """A repository whose objects, so it says, are elsewhere, with a program to fetch them and hooks."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "a.py").write_text("1\n")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\ntouch {tmp_path / 'sprung'}\n")
    trap.chmod(0o755)
    settings = {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": str(workspace),
        "remote.origin.uploadPack": str(trap),
        "core.fsmonitor": str(trap),
        "protocol.allow": "always",
    }
    words = [["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]]
    for command in (*words, *(["config", name, value] for name, value in settings.items())):
        subprocess.run(["git", "-C", workspace, *command], check=True)
    (workspace / ".git/hooks").mkdir(exist_ok=True)
    (workspace / ".git/hooks/reference-transaction").symlink_to(trap)
    return workspace


def test_no_object_is_fetched_for_a_repository_that_lacks_it(trapped: Path, tmp_path: Path) -> None:
    assert patch_survival(_PATCH, trapped) is None
    head = head_of(trapped)
    assert head
    HostGit(trapped)("update-ref", "refs/heads/other", head)
    (trapped / ".git/objects" / head[:2] / head[2:]).unlink()
    assert head_of(trapped) is None
    assert not (tmp_path / "sprung").exists()
