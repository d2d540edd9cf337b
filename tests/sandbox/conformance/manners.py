"""How a command is run: what it sees, what comes back, what is refused."""

import os
import signal
import threading

from gametape.core.errors import BadInput, MissingDependency
from gametape.sandbox.backend import SandboxSpec
from gametape.sandbox.policy import SECRET_PATHS, PythonRules, SandboxPolicy
from gametape.sandbox.third_party_python import third_party_directories
from tests.sandbox.conformance.bench import Bench, promise, raises


@promise
def a_harmless_commandraises_no_suspicion(bench: Bench) -> None:
    result = bench.python("import sys; print('out'); print('err', file=sys.stderr)")
    assert (result.stdout, result.stderr, result.exit_code, result.signal) == ("out\n", "err\n", 0, None)
    assert (result.killed_by, result.violations, result.ok) == (None, (), True)
    assert result.policy_hash == SandboxPolicy().hash
    assert result.backend.startswith(bench.backend.name)


@promise
def exit_codes_come_through(bench: Bench) -> None:
    assert [bench.run("sh", "-c", f"exit {code}").exit_code for code in (0, 1, 3, 126, 255)] == [0, 1, 3, 126, 255]


@promise
def no_such_command_is_127(bench: Bench) -> None:
    for name in ("no-such-command", "/no/such/command", "no=such=command"):
        result = bench.run(name, "argument")
        assert (result.exit_code, result.killed_by, result.stdout) == (127, None, ""), result


@promise
def a_command_is_never_taken_for_a_word_of_the_shell(bench: Bench) -> None:
    """Whoever waits for the command may be a shell: its own commands are not ours."""
    for argv in (["exit", "7"], ["eval", "exit 7"], ["A=b", "exit", "7"]):
        assert bench.run(*argv).exit_code == 127
    assert bench.run("echo", "$HOME", "a  b", "*").stdout == "$HOME a  b *\n"


@promise
def a_signal_is_told(bench: Bench) -> None:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGSEGV):
        result = bench.run("sh", "-c", f"kill -{int(number)} $$")
        assert (result.exit_code, result.signal, result.killed_by) == (128 + number, number, None), result
        assert result.stderr == ""


@promise
def no_signal_is_ignored_or_blocked(bench: Bench) -> None:
    lines = bench.run("cat", "/proc/self/status").stdout.splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert {int(status[name], 16) for name in ("SigIgn", "SigBlk")} == {0}
    assert bench.run("sh", "-c", "yes | head -n 1").stderr == ""


@promise
def input_is_readable_and_nothing_else(bench: Bench) -> None:
    text = "hello" * 100_000
    assert bench.run("cat", stdin=text.encode()).stdout == text
    assert bench.run("cat").stdout == ""
    code = "import os, errno\ntry: os.write(0, b'x')\nexcept OSError as e: print(errno.errorcode[e.errno])"
    assert bench.run("python3", "-c", code, stdin=b"x").stdout == "EBADF\n"


@promise
def a_command_need_not_read_its_input(bench: Bench) -> None:
    assert bench.run("true", stdin=b"x" * 1_000_000).exit_code == 0


@promise
def output_without_end_of_line_and_of_any_byte_comes_through(bench: Bench) -> None:
    result = bench.python("import os; os.write(1, b'a\\xff'); os.write(2, b'b')")
    assert (result.stdout, result.stderr) == ("a\N{REPLACEMENT CHARACTER}", "b")


@promise
def the_environment_is_the_policys(bench: Bench) -> None:
    os.environ["GAMETAPE_TEST_MARK"] = "host-only"
    try:
        granted = (("WANTED", "a b=c"), ("HOME", "/workspace"), ("odd.name", "1"))
        result = bench.run("env", policy=SandboxPolicy(environment=granted))
    finally:
        del os.environ["GAMETAPE_TEST_MARK"]
    variables = dict(line.split("=", 1) for line in result.stdout.splitlines())
    assert set(variables) == {"WANTED", "odd.name", "HOME", "PATH", "USER", "LANG", "TMPDIR", "PWD"}
    assert (variables["WANTED"], variables["HOME"], variables["USER"]) == ("a b=c", "/workspace", "agent")


@promise
def variables_of_the_policy_load_nothing_before_the_command(bench: Bench) -> None:
    """A library that the workspace holds is the command's affair, not that of whoever prepares it."""
    workspace = bench.directory("workspace")
    (workspace / "evil.so").write_bytes(b"not a library")
    policy = SandboxPolicy(environment=(("LD_PRELOAD", "/workspace/evil.so"), ("ENV", "/workspace/evil.so")))
    result = bench.run("cat", "/proc/self/comm", workspace=workspace, policy=policy)
    assert result.stdout == "cat\n"
    assert result.stderr.count("LD_PRELOAD") == 1  # the loader complains once: for the command


@promise
def it_begins_in_the_workspace_as_an_ordinary_user(bench: Bench) -> None:
    result = bench.run("sh", "-c", "pwd; id -u; touch here && stat -c %u here; test -w $HOME && test -w $TMPDIR")
    directory, user, owner = result.stdout.split()
    assert (result.exit_code, directory, user) == (0, "/workspace", owner)
    assert user != "0"


@promise
def it_has_no_capability_and_cannot_gain_one(bench: Bench) -> None:
    lines = bench.run("cat", "/proc/self/status").stdout.splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    assert {int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {0}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


@promise
def the_workspace_stays_and_keeps_its_owner(bench: Bench) -> None:
    workspace = bench.directory("workspace")
    owner = workspace.stat().st_uid
    (workspace / "mine").write_text("before")
    os.chown(workspace / "mine", owner, workspace.stat().st_gid)
    sandbox = bench.backend.start(SandboxSpec(workspace=workspace))
    assert sandbox.exec(["sh", "-c", "echo after > mine && mkdir -p d && echo new > d/new"]).ok
    assert sandbox.exec(["cat", "mine", "d/new"]).stdout == "after\nnew\n"
    assert {path.stat().st_uid for path in workspace.rglob("*")} == {owner}


@promise
def without_a_workspace_there_is_an_empty_one_that_vanishes(bench: Bench) -> None:
    sandbox = bench.backend.start(SandboxSpec())
    assert sandbox.exec(["sh", "-c", "ls -A; echo x > file; cat file"]).stdout == "x\n"
    assert sandbox.exec(["sh", "-c", "ls -A; ls -A /tmp/home /dev/shm"]).stdout.split() == ["/dev/shm:", "/tmp/home:"]


@promise
def what_is_granted_is_shown_as_granted(bench: Bench) -> None:
    read_only, writable = bench.directory("ro"), bench.directory("rw")
    (read_only / "file").write_text("seen")
    (bench.place / "hidden").write_text("never")
    policy = SandboxPolicy(read_only=(str(read_only),), writable=(str(writable),))
    script = f"cd {bench.place}; cat ro/file; echo x > ro/new; echo y > rw/new; cat hidden"
    result = bench.run("sh", "-c", script, policy=policy)
    assert result.stdout == "seen"
    assert "Read-only file system" in result.stderr
    assert (writable / "new").read_text() == "y\n"
    assert not (read_only / "new").exists()


@promise
def a_private_directory_of_the_host_user_can_be_granted(bench: Bench) -> None:
    private = bench.directory("private", 0o700)
    (private / "file").write_text("mine")
    (private / "file").chmod(0o600)
    os.chown(private / "file", private.stat().st_uid, private.stat().st_gid)
    assert bench.run("cat", str(private / "file"), policy=SandboxPolicy(read_only=(str(private),))).stdout == "mine"
    assert bench.run("cat", "file", workspace=private).stdout == "mine"


@promise
def hidden_places_are_empty(bench: Bench) -> None:
    shown = bench.directory("shown")
    for name in ("answer/deep/kept", "plain"):
        (shown / name).mkdir(parents=True)
        (shown / name / "file").write_text(name)
    (shown / "answer" / "file").write_text("never")
    (shown / "answer.txt").write_text("never")
    (bench.place / "link").symlink_to(shown)
    hidden = (f"{bench.place}/link/answer", f"{shown}/answer/deep", f"{shown}/answer.txt", "/no/such/path")
    policy = SandboxPolicy(read_only=(f"{shown}/", f"{shown}/answer/deep/kept"), hidden=hidden)
    code = f"""
import ctypes, os
os.chdir({str(shown)!r})
libc = ctypes.CDLL(None)
for path in (b"answer", b"answer.txt", b"answer/deep"):
    libc.umount2(path, 2)
for path in ("answer", "answer/deep", "plain"):
    print(*sorted(os.listdir(path)))
print(repr(open("answer.txt").read()) + open("answer/deep/kept/file").read())
for path in ("answer/new", "answer/deep/new", "answer/deep/kept/new", "answer.txt"):
    try: open(path, "w")
    except OSError: continue
    print("written", path)
"""
    result = bench.python(code, **dict(policy))
    assert result.stdout.splitlines() == ["deep", "kept", "file", "''answer/deep/kept"], result
    assert (shown / "answer.txt").read_text() == "never"


@promise
def what_a_command_may_change_cannot_be_hidden(bench: Bench) -> None:
    workspace = bench.directory("workspace")
    (workspace / "answer").mkdir()
    with raises(BadInput, "may change"):
        bench.backend.start(SandboxSpec(workspace=workspace, policy=SandboxPolicy(hidden=(f"{workspace}/answer",))))


@promise
def other_peoples_packages_are_not_shown(bench: Bench) -> None:
    if bench.name == "docker":
        return  # the image is what was chosen to be shown
    places = third_party_directories()
    code = "import os, sys\nfor place in sys.argv[1:]: print(*os.listdir(place))"
    result = bench.run("/usr/bin/python3", "-c", code, *places, policy=SandboxPolicy(python=False))
    assert result.stdout.split() == [], result
    assert result.exit_code == 0 or not os.path.exists("/usr/bin/python3"), result


@promise
def only_what_is_granted_can_be_written(bench: Bench) -> None:
    code = """
import os
for place in ("/", "/etc", "/usr", "/usr/bin", "/dev", "/proc/sys/kernel", "/var"):
    try: os.close(os.open(place + "/new", os.O_WRONLY | os.O_CREAT))
    except OSError: continue
    print(place)
"""
    assert bench.python(code).stdout == ""


@promise
def there_is_no_network(bench: Bench) -> None:
    names = bench.run("cat", "/proc/net/dev").stdout.splitlines()[2:]
    assert [line.split(":")[0].strip() for line in names] in ([], ["lo"])
    result = bench.python("import socket\ntry: socket.socket()\nexcept OSError as error: print(type(error).__name__)")
    assert result.stdout != ""


@promise
def loopback_is_the_sandboxs_own(bench: Bench) -> None:
    code = """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=lambda: server.accept()[0].sendall(b"hello")).start()
print(socket.create_connection(server.getsockname()).recv(10))
"""
    result = bench.python(code, network="loopback")
    assert (result.stdout, result.violations) == ("b'hello'\n", ()), result


@promise
def an_attempt_is_recorded(bench: Bench) -> None:
    if not bench.capabilities.syscall_events:
        return
    code = """
import ctypes, socket
for attempt in (lambda: socket.socket(socket.AF_INET), lambda: open('/etc/shadow')):
    try: attempt()
    except OSError: pass
ctypes.CDLL(None).unshare(0x10000000)
"""
    result = bench.python(code, watched=SECRET_PATHS)
    assert [(entry.syscall, entry.action) for entry in result.violations] == [
        *(("socket", "denied"), ("openat", "denied"), ("unshare", "denied"))
    ]
    assert all("python3 -c" in entry.command for entry in result.violations)


@promise
def a_policy_can_kill_at_the_first_violation(bench: Bench) -> None:
    if not bench.capabilities.syscall_events:
        return
    code = "import socket\ntry: socket.socket()\nexcept OSError: pass\nprint('went on')"
    result = bench.python(code, on_violation="kill")
    assert (result.killed_by, result.stdout) == ("policy", "")
    assert [(entry.syscall, entry.action) for entry in result.violations] == [("socket", "killed")]


@promise
def a_flood_of_violations_ends_the_command(bench: Bench) -> None:
    if not bench.capabilities.syscall_events:
        return
    code = "import socket\nwhile True:\n  try: socket.socket()\n  except OSError: pass"
    result = bench.python(code, max_violations=50)
    assert (result.killed_by, len(result.violations)) == ("policy", 50)


@promise
def language_rules_report(bench: Bench) -> None:
    result = bench.python("import subprocess; eval('1')", language=PythonRules())
    assert result.exit_code == 0, result
    assert {"python:import", "python:name"} <= {entry.syscall for entry in result.violations}
    if bench.name != "docker":  # which has no pipe for what the interpreter says while it runs
        quiet = bench.python("__builtins__.__dict__['ev' + 'al']('open(\"/var/x\", \"w\")')", language=PythonRules())
        assert any(entry.syscall.startswith("python:") for entry in quiet.violations), quiet


@promise
def many_threads_may_run_commands_at_once(bench: Bench) -> None:
    results: list[str] = []
    sandbox = bench.backend.start(SandboxSpec())
    threads = [
        threading.Thread(target=lambda n=n: results.append(sandbox.exec(["echo", str(n)]).stdout)) for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(map(int, results)) == list(range(16))


@promise
def the_host_can_put_and_get(bench: Bench) -> None:
    sandbox = bench.backend.start(SandboxSpec(workspace=bench.directory("workspace")))
    sandbox.put("in.txt", b"abc")
    assert sandbox.exec(["sh", "-c", "tr a-c A-C < in.txt > out.txt"]).ok
    assert sandbox.get("out.txt") == b"ABC"
    with raises(BadInput):
        bench.backend.start(SandboxSpec()).get("out.txt")


@promise
def what_is_required_and_lacking_fails_closed(bench: Bench) -> None:
    lacking = {name for name, value in bench.capabilities.model_dump().items() if not value}
    for name in lacking:
        with raises(MissingDependency, name):
            bench.backend.start(SandboxSpec(requires=frozenset({name})))
    assert lacking


@promise
def bad_input_is_named(bench: Bench) -> None:
    for argv in ([], [""], ["a\0b"]):
        with raises(BadInput):
            bench.backend.start(SandboxSpec()).exec(argv)
    with raises(BadInput, "no such workspace"):
        bench.backend.start(SandboxSpec(workspace=bench.place / "missing"))
    with raises(BadInput, "does not exist"):
        bench.backend.start(SandboxSpec(policy=SandboxPolicy(read_only=("/no/such/path",))))
