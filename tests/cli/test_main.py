import json
import subprocess
import sys

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


def test_the_version_is_told() -> None:
    assert gametape("--version").stdout.startswith("gametape ")


def test_doctor_says_what_works_here() -> None:
    done = gametape("doctor", "--json")
    answer = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0
    assert set(answer) >= {"backends", "python", "torch", "gpu"}
    assert answer["backends"]["bubblewrap"]["available"] is True
    assert answer["backends"]["bubblewrap"]["capabilities"]["network_isolation"] is True


def test_doctor_without_any_backend_exits_3() -> None:
    done = gametape("doctor", "--json", env={"PATH": "/nonexistent"})
    assert done.returncode == 3
    assert "bubblewrap" in done.stdout


def test_the_demo_shows_six_programs_and_the_wall_holds() -> None:
    done = gametape("demo", "--json")
    answer = json.loads(done.stdout.splitlines()[-1])
    assert (done.returncode, answer["held"], len(answer["acts"])) == (0, True, 6)
    assert "six programs" in gametape("demo").stdout.lower()
