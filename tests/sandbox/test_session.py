"""A live sandbox: what one command leaves is there for the next, and no command can take the session down."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.bubblewrap import BubblewrapSandbox
from gametape.sandbox.hardening_measures import ALL_MEASURES
from gametape.sandbox.keeper_client import SandboxError, keeper
from gametape.sandbox.policy import SECRET_PATHS, SandboxLimits, SandboxPolicy
from gametape.sandbox.pool import WarmPool
from gametape.sandbox.session import ShellSession
from tests.patience import HANG, processes_with, wait_until

SMALL = SandboxLimits(wall_seconds=HANG, memory_mb=200, processes=40, disk_mb=40, output_bytes=50_000)


def start(
    workspace: Path | None = None, without: frozenset[str] = frozenset(), limits: SandboxLimits = SMALL
) -> ShellSession:
    spec = SandboxSpec(policy=SandboxPolicy(limits=limits, watched=SECRET_PATHS), workspace=workspace)
    return ShellSession(BubblewrapSandbox(spec, ALL_MEASURES - without))


def _session(request: pytest.FixtureRequest) -> Iterator[ShellSession]:
    with start(without=frozenset() if request.param == "control group" else frozenset({"control-group"})) as live:
        yield live


session = pytest.fixture(params=["control group", pytest.param("watching", marks=pytest.mark.slow)])(_session)
limited = pytest.fixture(params=["control group", "watching"], name="limited")(_session)
"""For what depends on how limits are held."""


@pytest.fixture
def plain() -> Iterator[ShellSession]:
    with start() as live:
        yield live


def test_the_shell_remembers(session: ShellSession) -> None:
    first = session.run("cd /tmp; A=5; export B=6; f() { echo f$A$B; }; alias x=y; set -u")
    assert (first.exit_code, first.directory) == (0, "/tmp")
    second = session.run("pwd; f; python3 -c 'import os; print(os.getcwd(), os.environ[\"B\"])'")
    assert second.stdout == "/tmp\nf56\n/tmp 6\n"
    assert (second.stderr, second.violations) == ("", ())


@pytest.mark.parametrize("command", ["echo a\0b", "echo \ud800"])
def test_what_is_no_text_is_refused_and_costs_nothing(session: ShellSession, command: str) -> None:
    with pytest.raises(BadInput):
        session.run(command)
    assert session.run("echo still here").stdout == "still here\n"


def test_background_jobs_live_on(session: ShellSession) -> None:
    session.run("(until [ -e /tmp/go ]; do sleep 0.01; done; echo late > /tmp/late) &")
    assert session.run("jobs -p | wc -l").stdout == "1\n"
    assert session.run("touch /tmp/go; wait; cat /tmp/late").stdout == "late\n"


def test_exit_codes_and_streams(session: ShellSession) -> None:
    result = session.run("echo out; echo err >&2; false")
    assert (result.exit_code, result.stdout, result.stderr) == (1, "out\n", "err\n")
    assert [session.run(f"(exit {code})").exit_code for code in (0, 3, 127)] == [0, 3, 127]
    assert session.run("no-such-command").exit_code == 127
    assert session.run("if then").exit_code != 0
    assert session.run("echo fine").stdout == "fine\n"


@pytest.mark.parametrize("killer", ["exit 7", "kill -9 $$", "exec true", "kill -9 -1", "exec 3<&- 4>&-; kill $$"])
def test_a_command_that_ends_its_shell_costs_only_the_shell(session: ShellSession, killer: str) -> None:
    session.run("cd /tmp; A=lost; echo kept > kept; sleep 100 &")
    ended = session.run(killer)
    after = session.run('pwd; cat kept; echo "${A-gone}"')
    if ended.shell_restarted:
        assert after.stdout == "/tmp\nkept\ngone\n"
    else:
        assert after.stdout == "/tmp\nkept\nlost\n"
    assert ended.shell_restarted == (killer != "kill -9 -1")


def test_jobs_outlive_their_shell_in_full(session: ShellSession) -> None:
    work = "/bin/echo done > /tmp/done; cat /etc/shadow; python3 -c 'print(1)' >> /tmp/done; touch /tmp/over"
    session.run(f"(until [ -e /tmp/go ]; do sleep 0.01; done; {work}) &")
    session.run("kill -9 $$")
    assert (
        session.run("touch /tmp/go; until [ -e /tmp/over ]; do sleep 0.01; done; cat /tmp/done").stdout == "done\n1\n"
    )


def test_a_shell_whose_directory_is_gone_starts_elsewhere(session: ShellSession) -> None:
    session.run("mkdir /tmp/d; cd /tmp/d; rmdir /tmp/d; kill -9 $$")
    session.run("mkdir /tmp/e; cd /tmp/e; echo")
    session.run("rmdir /tmp/e; kill -9 $$")
    assert session.run("pwd; echo up").stdout == "/workspace\nup\n"


def test_after_a_flood_of_violations_the_next_command_starts_afresh() -> None:
    spec = SandboxSpec(policy=SandboxPolicy(limits=SMALL, max_violations=20))
    with ShellSession(BubblewrapSandbox(spec, ALL_MEASURES)) as session:
        flood = "import socket\nwhile True:\n  try: socket.socket()\n  except OSError: pass"
        assert session.run(f"python3 -c '{flood}'").killed_by == "policy"
        once = session.run("python3 -c 'import socket\ntry: socket.socket()\nexcept OSError: print(1)'")
        assert (once.killed_by, once.stdout, len(once.violations)) == (None, "1\n", 1)


def test_the_exit_code_of_a_shell_that_ended_is_told(plain: ShellSession) -> None:
    ended = plain.run("exit 7")
    assert (ended.exit_code, ended.signal, ended.killed_by, ended.shell_restarted) == (7, None, None, True)
    ended = plain.run("kill -9 $$")
    assert (ended.exit_code, ended.signal, ended.killed_by) == (137, 9, None)


@pytest.mark.parametrize(
    ("command", "restarted"),
    [
        ("sleep 100", False),
        ("while :; do :; done", True),
        ("python3 -c 'while True: pass'", False),
        ("read x </dev/tty || sleep 99", False),
    ],
)
def test_a_command_that_hangs_is_ended_and_said_so(session: ShellSession, command: str, restarted: bool) -> None:
    session.run("sleep 1000 &")
    result = session.run(command, wall_seconds=0.5)
    assert (result.killed_by, result.shell_restarted) == ("time", restarted)
    assert session.run("ps ax | grep -c '[s]leep 1000'").stdout == "1\n", "jobs from before are left alone"


def test_a_command_that_floods_is_ended(limited: ShellSession) -> None:
    result = limited.run("yes")
    assert result.killed_by == "output"
    assert len(result.stdout) == SMALL.output_bytes
    assert limited.run("echo clear").stdout == "clear\n"


@pytest.mark.parametrize(
    ("bomb", "limit"),
    [
        ("python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 22))'", "memory"),
        ("python3 -c 'import os, time\nwhile True:\n  if os.fork() == 0: time.sleep(100)'", "processes"),
        ('python3 -c \'f = open("/tmp/big", "wb")\nwhile True: f.write(bytes(1 << 20)); f.flush()\'', "disk"),
    ],
)
def test_a_bomb_ends_alone(limited: ShellSession, bomb: str, limit: str) -> None:
    assert limited.run(bomb).killed_by == limit
    limited.run("rm -f /tmp/big")
    result = limited.run("echo still here; ls / | wc -l")
    assert (result.killed_by, result.stdout.splitlines()[0]) == (None, "still here")


def test_violations_are_told_with_the_command_that_tried(session: ShellSession) -> None:
    assert [violation.args[1] for violation in session.run("cat /etc/shadow").violations] == ["/etc/shadow"]
    assert session.run("cat /etc/passwd").violations == ()
    tried = session.run("python3 -c 'import socket; socket.socket()'")
    assert [violation.syscall for violation in tried.violations] == ["socket"]


def test_the_wall_is_the_same_inside_a_session(session: ShellSession) -> None:
    status = session.run("grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status").stdout.split()
    assert status == ["CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"]
    assert session.run("id -u; hostname; ls /proc | grep -c '^[0-9]'").stdout.splitlines()[:2] == ["1000", "sandbox"]
    assert session.run("unshare -U true").exit_code != 0
    assert session.run("ls -l /proc/self/fd | wc -l").stdout == "5\n"
    assert session.run("touch /x /usr/x /etc/x").exit_code != 0


def test_a_report_cannot_be_forged_by_printing(session: ShellSession) -> None:
    result = session.run("printf '0\\0/forged\\0'; printf '0\\0/forged\\0' >&4; sleep 0.1; exit 9")
    assert result.exit_code == 9
    assert result.directory != "/forged"


def test_an_early_report_buys_nothing(session: ShellSession) -> None:
    """bash keeps its report pipe at another number while a command runs; whoever finds it can write there."""
    pipes = "for n in 10 11 12 13; do printf '%s\\0000\\000/\\000' \"$__token\" >&$n; done 2>/dev/null"
    forge = f"{pipes}; until [ -e /tmp/go ]; do sleep 0.01; done; echo late > /tmp/late"
    assert session.run(forge).exit_code in (0, 255)
    assert (session.run("echo next; (exit 3)").exit_code, session.run("true").exit_code) == (3, 0)
    late = session.run("touch /tmp/go; sleep 0.3; cat /tmp/late")
    assert late.exit_code == 1, "what went on after its report was ended"


@pytest.mark.parametrize("report", ["%05000d\\0/\\0", "x\\0y\\0z\\0", "\\0\\0\\0\\0\\0"])
def test_a_garbled_report_costs_the_shell_only(plain: ShellSession, report: str) -> None:
    plain.run(f"for n in 10 11 12 13; do printf '{report}' 1 >&$n; done 2>/dev/null; sleep 0.3")
    assert plain.run("echo fine; (exit 4)").exit_code == 4


def test_a_job_that_stops_everybody_does_not_stop_us(limited: ShellSession) -> None:
    stopper = "import os, signal\nwhile True:\n  try: os.kill(-1, signal.SIGSTOP)\n  except OSError: pass"
    limited.run(f"python3 -c '{stopper}' &", wall_seconds=2)
    limited.submit("exit 3", wall_seconds=1).exception(timeout=HANG)
    limited.submit("echo here", wall_seconds=1).exception(timeout=HANG)
    limited.close()


def test_limits_hold_between_commands_and_for_jobs_of_earlier_ones(limited: ShellSession) -> None:
    filler = 'import time\nfor n in range(400): open(f"/tmp/f{n}", "wb").write(bytes(1 << 20)); time.sleep(0.005)'
    limited.run(f"python3 -c '{filler}' &")
    wait_until(lambda: limited.run("pgrep python3").exit_code == 1, "the end of what fills the disk")
    held = int(limited.run("du -smx /tmp | cut -f1").stdout)
    assert held < 2 * SMALL.disk_mb


def test_long_commands_and_odd_text(plain: ShellSession) -> None:
    text = "x" * 200_000
    assert plain.run(f"cat <<'END' | wc -c\n{text}\nEND").stdout == "200001\n"
    assert plain.run("echo 'ünï ☃'; printf '\\377\\n'").stdout == "ünï ☃\n\ufffd\n"
    with pytest.raises(BadInput):
        plain.run("a\0b")


def test_put_and_get_while_it_runs(plain: ShellSession, tmp_path: Path) -> None:
    plain.put("in/file.txt", b"abc")
    assert plain.run("cd in; tr a-c A-C < file.txt > out.txt; echo more >> file.txt").exit_code == 0
    assert (plain.get("in/out.txt"), plain.get("in/file.txt")) == (b"ABC", b"abcmore\n")
    with start(workspace=tmp_path) as bound:
        bound.put("x", b"1")
        bound.run("echo 2 > y")
    assert (tmp_path / "x").read_bytes() == b"1"
    assert {path.stat().st_uid for path in tmp_path.iterdir()} == {os.getuid()}


def test_commands_from_many_threads_wait_for_each_other(plain: ShellSession) -> None:
    outputs: list[str] = []
    threads = [threading.Thread(target=lambda n=n: outputs.append(plain.run(f"echo {n}").stdout)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, outputs)) == list(range(20))


def test_a_closed_session_leaves_nothing_and_says_so(tmp_path: Path) -> None:
    session = start(workspace=tmp_path)
    nonce = f"100000.{os.getpid()}"
    session.run(f"(setsid sleep {nonce}) & sleep {nonce} &")
    wait_until(lambda: len(processes_with(nonce)) >= 2, "the start of both jobs")
    session.close()
    assert processes_with(nonce) == []
    with pytest.raises(SandboxError, match="closed"):
        session.run("true")
    with pytest.raises(SandboxError, match="closed"):
        session.get("x")
    session.close()


def test_a_session_whose_keeper_is_killed_says_so() -> None:
    """In a process of its own: other tests of this one may hold sandboxes of the same keeper."""
    code = "from tests.sandbox.test_session import outlive_the_keeper; outlive_the_keeper()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=HANG, check=False)
    assert (ended.returncode, ended.stdout) == (0, "new\n"), ended.stderr


def outlive_the_keeper() -> None:
    session = start()
    os.kill(keeper().pid, signal.SIGKILL)
    with pytest.raises(SandboxError):
        session.run("sleep 5")
    session.close()
    with start() as another:
        print(another.run("echo new").stdout, end="")


def test_many_sessions_at_once() -> None:
    sessions = [start() for _ in range(20)]
    answers = [session.submit(f"sleep 0.1; echo {number}") for number, session in enumerate(sessions)]
    assert [int(answer.result().stdout) for answer in answers] == list(range(20))
    for session in sessions:
        session.close()


def test_a_warm_pool_gives_each_out_once() -> None:
    with WarmPool(start, size=2) as pool:
        taken = [pool.take() for _ in range(5)]
        assert len(set(map(id, taken))) == 5
        taken[0].run("echo mine > /tmp/mark")
        assert taken[1].run("cat /tmp/mark").exit_code == 1
        for session in taken:
            session.close()
    with pytest.raises(SandboxError):
        pool.take()
