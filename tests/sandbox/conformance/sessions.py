"""Sandboxes that stay up and have a past, where a backend has them. The long form: test_session, test_rewind."""

from collections.abc import Iterator
from contextlib import contextmanager

from gametape.core.errors import MissingDependency
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.policy import SECRET_PATHS, SandboxPolicy
from gametape.sandbox.rewindable_session import RewindableSession
from gametape.sandbox.session import ShellSession, open_session
from gametape.sandbox.snapshots.store import SnapshotStore, ViewMode
from tests.sandbox.conformance.bench import SMALL, Bench, promise, raises

SPEC = SandboxSpec(policy=SandboxPolicy(limits=SMALL, watched=SECRET_PATHS))


@contextmanager
def live(bench: Bench) -> Iterator[ShellSession]:
    with open_session(SPEC, bench.backend.name) as session:
        yield session


def has_sessions(bench: Bench) -> bool:
    """Whether to go on; a backend without them must say so."""
    if not bench.capabilities.sessions:
        with raises(MissingDependency):
            open_session(SPEC, bench.backend.name)
    return bench.capabilities.sessions


@promise
def a_session_remembers(bench: Bench) -> None:
    if has_sessions(bench):
        with live(bench) as session:
            session.run("cd /tmp; export A=5; f() { echo f$A; }; sleep 100 &")
            result = session.run("pwd; f; jobs | wc -l")
            assert (result.stdout, result.exit_code, result.violations) == ("/tmp\nf5\n1\n", 0, ()), result


@promise
def no_command_takes_a_session_down(bench: Bench) -> None:
    if has_sessions(bench):
        with live(bench) as session:
            session.run("cd /tmp; echo kept > kept")
            assert session.run("kill -9 -1; kill -9 $$").shell_restarted
            assert session.run("while :; do :; done", wall_seconds=0.3).killed_by == "time"
            assert session.run("sleep 100", wall_seconds=0.3).killed_by == "time"
            assert session.run("yes").killed_by == "output"
            assert session.run("python3 -c 'x = b\"x\" * (1 << 30)'").killed_by == "memory"
            fork_bomb = "python3 -c 'import os, time\nwhile True:\n  if os.fork() == 0: time.sleep(99)'"
            assert session.run(fork_bomb).killed_by == "processes"
            assert session.run("cat kept; pwd").stdout == "kept\n/tmp\n"


@promise
def the_wall_is_the_same_in_a_session(bench: Bench) -> None:
    if has_sessions(bench):
        with live(bench) as session:
            status = session.run("grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/self/status").stdout.split()
            assert status == ["CapEff:", "0" * 16, "NoNewPrivs:", "1", "Seccomp:", "2"], status
            tried = session.run("python3 -c 'import socket; socket.socket()'; cat /etc/shadow; touch /x /usr/x")
            assert [violation.syscall for violation in tried.violations] == ["socket", "openat"], tried
            assert session.run("ls /x /usr/x").exit_code != 0


@promise
def hidden_places_are_empty_in_a_session(bench: Bench) -> None:
    if has_sessions(bench):
        shown = bench.directory("shown")
        (shown / "answer").mkdir()
        (shown / "answer" / "file").write_text("never")
        policy = SandboxPolicy(limits=SMALL, read_only=(str(shown),), hidden=(f"{shown}/answer",))
        with open_session(SandboxSpec(policy=policy), bench.backend.name) as session:
            for _ in range(2):
                result = session.run(
                    f"umount -l {shown}/answer 2> /dev/null; touch {shown}/answer/new; ls {shown} {shown}/*"
                )
                assert result.stdout.split() == [f"{shown}:", "answer", f"{shown}/answer:"], result


@promise
def a_tree_goes_back_and_forks(bench: Bench) -> None:
    if not bench.capabilities.snapshot:
        return
    tree = bench.directory("tree")
    (tree / "a").write_text("1\n")
    modes: tuple[ViewMode, ...] = ("auto", "copy")
    for mode in modes:
        with (
            SnapshotStore(bench.place / f"store-{mode}", mode=mode) as store,
            RewindableSession(store, store.import_tree(tree), SPEC, bench.backend.name) as line,
        ):
            line.run("echo 2 >> a; mkdir -m 700 d; ln -s a link; echo x > d/x")
            saved = line.snapshot()
            with line.fork(saved) as other:
                other.run("rm -r d; echo 3 >> a")
                line.run("echo 4 > a; chmod 000 d")
                assert other.run("cat a; ls").stdout == "1\n2\n3\na\nlink\n"
            line.restore(saved)
            assert line.run("cat link d/x; stat -c %a d").stdout == "1\n2\nx\n700\n"
            line.session.put("from/host", b"hello")
            assert line.run("cat from/host && rm -r from && ls").stdout == "helloa\nd\nlink\n"
    assert (tree / "a").read_text() == "1\n"
