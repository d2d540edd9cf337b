import json
import subprocess
import sys

import pytest
import typer

from tests.cli.command import gametape


def test_help_lists_the_verbs_and_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom gametape.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'torch', 'transformers', 'pydantic', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sandbox" in done.stdout
    assert "trajectory" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"


def test_every_verb_teaches() -> None:
    for words in (
        ["demo"],
        ["doctor"],
        ["sandbox"],
        ["sandbox", "exec"],
        ["trajectory"],
        ["trajectory", "check"],
    ):
        done = gametape(*words, "--help")
        assert done.returncode == 0
        assert len(done.stdout) > 100


def test_an_unknown_verb_is_bad_input() -> None:
    done = gametape("levitate")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)


def test_what_is_said_of_an_error_does_not_drive_the_terminal() -> None:
    done = gametape("trajectory", "check", "\x1b]0;mine\x07.json")
    assert done.returncode == 2
    assert "\x1b" not in done.stderr


def test_the_version_is_told() -> None:
    assert gametape("--version").stdout.startswith("gametape ")


def test_doctor_says_what_works_here() -> None:
    done = gametape("doctor", "--json")
    answer = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0
    assert set(answer) >= {"backends", "python", "torch", "gpu"}
    assert answer["backends"]["bubblewrap"]["available"] is True
    assert answer["backends"]["bubblewrap"]["capabilities"]["network_isolation"] is True


def test_doctor_names_the_cure_for_a_missing_backend() -> None:
    answer = json.loads(gametape("doctor", "--json", env={"PATH": "/nonexistent"}).stdout.splitlines()[-1])
    assert answer["programs"] == {"git": False, "rg": False}
    assert answer["backends"]["bubblewrap"]["available"] is False
    assert "apt-get install bubblewrap" in answer["backends"]["bubblewrap"]["missing"][0]


def test_doctor_exits_3_when_nothing_works(monkeypatch: pytest.MonkeyPatch) -> None:
    from gametape.cli import doctor

    nothing = {"backends": {"bubblewrap": {"available": False}}, "python": "", "torch": None, "gpu": None}
    monkeypatch.setattr(doctor, "examine", lambda: nothing)
    with pytest.raises(typer.Exit) as ended:
        doctor.doctor(as_json=True)
    assert ended.value.exit_code == 3
