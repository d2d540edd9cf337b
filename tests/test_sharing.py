"""Several pytest processes over one suite, as `make test` starts them."""

import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.patience import HANG, wait_until

ROOT = Path(__file__).parents[1]


def suite(place: Path, **files: str) -> Path:
    """Test files that can write into `log`, each in a directory of its own."""
    for name, text in files.items():
        head = (
            f"import os, time\ndef log(word): os.write(os.open({str(place / 'log')!r}, 1089), (word + ' ').encode())\n"
        )
        (place / name).mkdir()
        (place / name / f"test_{name}.py").write_text(head + textwrap.dedent(text))
    return place


def logged(place: Path) -> list[str]:
    return (place / "log").read_text().split() if (place / "log").exists() else []


def start(place: Path, *words: str | Path) -> "subprocess.Popen[str]":
    (place / "tmp").mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(place / "tmp")}
    command = [sys.executable, ROOT / "scripts/test.py", *words, place]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def run(place: Path, *words: str | Path) -> tuple[int, str, str]:
    running = start(place, *words)
    out, err = running.communicate(timeout=HANG)
    return running.returncode, out, err


def test_every_test_runs_once_and_nothing_is_left(tmp_path: Path) -> None:
    text = "def test_one(): log('{0}1')\ndef test_two(tmp_path): log('{0}2')\n"
    code, out, err = run(suite(tmp_path, **{name: text.format(name) for name in "abcdefgh"}))
    assert code == 0, out + err
    assert sorted(logged(tmp_path)) == [f"{name}{number}" for name in "abcdefgh" for number in (1, 2)]
    assert sum(line.startswith("ok ") for line in err.splitlines()) == 8
    assert os.listdir(tmp_path / "tmp") == []


def test_what_passed_is_not_run_again_until_all_has_passed(tmp_path: Path) -> None:
    keep = tmp_path / "kept" / "here"
    bad = "def test_bad():\n    log('b')\n    assert os.path.exists(" + repr(str(tmp_path / "mended")) + ")\n"
    place = suite(tmp_path, a="def test_good(): log('a')\n", b=bad)
    assert run(place, "--keep", keep)[0] == 1
    (tmp_path / "mended").touch()
    code, out, _ = run(place, "--keep", keep)
    assert (code, sorted(logged(tmp_path))) == (0, ["a", "b", "b"])
    assert "1 files passed in an earlier run" in out
    assert not keep.exists()
    assert run(place, "--keep", keep)[0] == 0
    assert sorted(logged(tmp_path)) == ["a", "a", "b", "b", "b"]


def test_few_that_failed_run_once_more_by_themselves(tmp_path: Path) -> None:
    second = f"def test_it():\n    log('b')\n    assert open({str(tmp_path / 'log')!r}).read().split().count('b') > 1\n"
    place = suite(tmp_path, a="def test_good(): log('a')\n", b=second)
    code, out, err = run(place, "--again")
    assert (code, sorted(logged(tmp_path))) == (0, ["a", "b", "b"]), out + err
    assert "b/test_b.py" in out.partition("FLAKY, failed beside other tests and passed alone")[2]
    suite(place, c="def test_bad():\n    log('c')\n    assert False\n")
    code, out, err = run(place, "--again")
    assert (code, logged(tmp_path).count("c")) == (1, 2), out + err
    assert "FLAKY" not in out


SKIPPED = "import pytest\n@pytest.mark.parametrize('number', range(2))\ndef test_it(number): pytest.skip('no server')\n"


def test_a_file_that_was_skipped_has_not_passed(tmp_path: Path) -> None:
    """It is skipped only if nothing else happened in it, and is tried again in the next run."""
    keep = tmp_path / "kept"
    place = suite(
        tmp_path,
        a="def test_good(): pass\n",
        b=SKIPPED,
        c=SKIPPED + "def test_good(): pass\n",
        d="import pytest\npytest.skip('no\\nbrowser', allow_module_level=True)\n",
        e="import pytest\n@pytest.mark.xfail\ndef test_open(): assert False\n",
        f=SKIPPED + "@pytest.fixture\ndef broken(): assert False\ndef test_error(broken): pass\n",
    )
    code, _, err = run(place, "--keep", keep)
    reported = {line.partition(".py")[0].rpartition("/test_")[2]: line for line in err.splitlines()}
    assert code == 1
    assert {name: line.split()[0] for name, line in reported.items()} == {
        "a": "ok",
        "b": "skipped",
        "c": "ok",
        "d": "skipped",
        "e": "ok",
        "f": "failed",
    }
    assert reported["b"].endswith("test_b.py: no server")
    assert reported["d"].endswith("test_d.py: no browser")
    assert reported["a"].endswith("test_a.py")
    assert sorted(name[-4] for name in os.listdir(keep)) == ["a", "c", "e"]


def test_the_longest_come_first(tmp_path: Path) -> None:
    """In the second run, all but the two longest wait for those: were they taken first, they would wait in vain."""
    times, log = str(tmp_path / "times"), str(tmp_path / "log")
    text = f"""
    def test_it():
        log('NAME')
        for _ in range(3000):
            if 'NAME' in 'mk' or not os.path.exists({times!r}) or {{'m', 'k'}} <= {{*open({log!r}).read().split()}}:
                return
            time.sleep(0.1)
        raise AssertionError('the longest, and one that is not known, were not taken first')
    """
    place = suite(tmp_path, **{name: text.replace("NAME", name) for name in "abcdefghijklm"})
    _, _, told = run(place)
    (tmp_path / "log").unlink()
    told = re.sub(r"[\d.]+(?= s  .*test_m\.py)", "20.5", told)
    told = re.sub(r".*test_k\.py\n", "", told)
    (tmp_path / "times").write_text(told)
    code, out, _ = run(place, "--times", tmp_path / "times")
    assert code == 0, out
    assert {*logged(tmp_path)} == {*"abcdefghijklm"}


def test_a_failure_is_shown_whole(tmp_path: Path) -> None:
    bad = "def test_bad():\n    left = 41\n    assert left == 42\n"
    code, out, err = run(suite(tmp_path, a=bad, b="def test_good(): pass\n"))
    assert code == 1
    assert "assert 41 == 42" in out
    assert "1 failed" in out
    assert f"temporary files are kept in {tmp_path / 'tmp'}/gametape-suite-" in out
    assert sum(line.startswith("failed ") for line in err.splitlines()) == 1


def test_a_file_that_cannot_be_read_is_a_failure(tmp_path: Path) -> None:
    code, out, _ = run(suite(tmp_path, a="import nothing_of_this_name\n", b="def test_good(): log('b')\n"))
    assert code == 1
    assert "nothing_of_this_name" in out
    assert logged(tmp_path) == []


@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL]
)
def test_whatever_ends_it_ends_them_all(number: signal.Signals, tmp_path: Path) -> None:
    text = "def test_long():\n    log(str(os.getpid()))\n    time.sleep(100000)\n"
    running = start(suite(tmp_path, **dict.fromkeys("abcdefghi", text)))
    expected = min(2 * len(os.sched_getaffinity(0)), 8)
    wait_until(lambda: len(logged(tmp_path)) >= expected, "the start of all processes")
    running.send_signal(number)
    out, _ = running.communicate(timeout=HANG)  # its processes hold stderr open as long as they live
    assert running.returncode == (-number if number == signal.SIGKILL else 1)
    assert out.count("! KeyboardInterrupt !") == (0 if number == signal.SIGKILL else expected)
    assert len(logged(tmp_path)) == expected
    assert len(os.listdir(tmp_path / "tmp")) == (1 if number == signal.SIGKILL else 0)
