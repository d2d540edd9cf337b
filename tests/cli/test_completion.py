"""Completion as bash does it: the script that `--show-completion` prints, run by a bash of its own."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import shellingham

from gametape.cli.main import VERBS, main

from .command import GAMETAPE, gametape


def _offered(line: str, tmp_path: Path) -> list[str]:
    """What bash offers for the last word of a command line."""
    words = line.split(" ")
    environment = {**os.environ, "SHELL": "/bin/bash", "PATH": f"{Path(GAMETAPE).parent}:{os.environ['PATH']}"}
    script = f"""
        eval "$({shlex.quote(sys.executable)} {shlex.quote(GAMETAPE)} --show-completion)"
        function_name=$(complete -p gametape | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
        COMP_WORDS=({" ".join(map(shlex.quote, words))})
        COMP_CWORD={len(words) - 1}
        "$function_name" gametape
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "--norc", "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gametape ta", ["task"]),
        ("gametape task ch", ["checkout", "check"]),
        ("gametape solve --mo", ["--model"]),
        ("gametape mine x --tier re", ["removal"]),
    ],
)
def test_bash_completes_verbs_and_options(tmp_path: Path, line: str, offered: list[str]) -> None:
    assert _offered(line, tmp_path) == offered


def test_only_the_root_installs_completion(tmp_path: Path) -> None:
    assert "--install-completion" in gametape("--help").stdout
    for verb in VERBS:
        assert "-completion" not in gametape(verb, "--help").stdout, verb


def test_it_is_installed_for_the_users_shell(tmp_path: Path) -> None:
    environment = {**os.environ, "HOME": str(tmp_path), "SHELL": "/bin/bash"}
    done = subprocess.run(
        [sys.executable, GAMETAPE, "--install-completion"], env=environment, capture_output=True, text=True, check=True
    )
    assert "completion is installed in" in done.stdout
    assert "_GAMETAPE_COMPLETE" in (tmp_path / ".bash_completions" / "gametape.sh").read_text()


def test_a_shell_nobody_knows_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise shellingham.ShellDetectionFailure

    monkeypatch.setattr(shellingham, "detect_shell", fail)
    monkeypatch.setenv("SHELL", "/bin/abacus")
    with pytest.raises(SystemExit) as ended:
        main(["--show-completion"])
    said = capsys.readouterr()
    assert (ended.value.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "SHELL" in said.err
