"""`gametape studio` as a process: it says where it listens, answers there, and ends when it is told to."""

import json
import signal
import socket
import subprocess
from pathlib import Path

import httpx

from ..patience import HANG
from ..studio.runs import make_run, score
from .command import GAMETAPE, run


def test_it_listens_on_this_machine_until_it_is_interrupted(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "one", "rlvr", [score(0, 0.2)])
    words = [GAMETAPE, "studio", "--runs", str(tmp_path / "runs"), "--home", str(tmp_path / "home"), "--port", "0"]
    with subprocess.Popen([*words, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as served:
        assert served.stdout
        told = json.loads(served.stdout.readline())
        assert told["address"].startswith("http://127.0.0.1:")
        assert told["runs"] == str(tmp_path / "runs")
        assert "one" in httpx.get(told["address"], timeout=HANG).text
        served.send_signal(signal.SIGINT)
        _, err = served.communicate(timeout=HANG)
    assert served.returncode in (0, 130)
    assert "Traceback" not in err


def test_a_taken_port_is_said(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        done = run("studio", "--runs", tmp_path, "--home", tmp_path / "home", "--port", str(taken.getsockname()[1]))
    assert (done.code, done.err.count("\n"), "--port" in done.err) == (3, 1, True)


def test_what_is_no_directory_and_no_address_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for words in (["--runs", tmp_path / "file"], ["--host", "not an address", "--port", "0"]):
        done = run("studio", "--home", tmp_path / "home", *words, cwd=tmp_path)
        assert (done.code, done.err.count("\n")) == (2, 1), done.err


def test_a_run_is_exported(tmp_path: Path) -> None:
    make_run(tmp_path / "one", "rlvr", [score(0, 0.2)])
    done = run("studio", "export", tmp_path / "one", "--out", tmp_path / "one.html", "--json")
    assert (done.code, done.answer["written"], done.answer["rollouts"]) == (0, str(tmp_path / "one.html"), 0)
    assert run("studio", "export", tmp_path / "nothing", "--out", tmp_path / "x.html").code == 2
