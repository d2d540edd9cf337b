"""A traced command: every path of the workspace that any process below it asks for is noted."""

from pathlib import Path

from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.policy import SandboxPolicy
from gametape.sandbox.result import FileTrace


def _trace(workspace: Path, command: str, files: dict[str, str]) -> FileTrace:
    for path, text in files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
        (workspace / path).chmod(0o755)
    policy = SandboxPolicy(trace_files="all")
    result = open_backend().start(SandboxSpec(policy=policy, workspace=workspace)).exec(["/bin/sh", "-c", command])
    assert result.trace is not None
    assert result.violations == ()
    return result.trace


def _paths(trace: FileTrace, kind: str) -> set[str]:
    return {access.path.removeprefix("/workspace/") for access in trace.accesses if access.kind == kind}


def test_reads_look_ups_lists_writes_and_programs_are_noted(tmp_path: Path) -> None:
    files = {
        "run": "#!/bin/sh\n. ./settings\ntest -f skip && exit 0\nls parts >listed\ncd parts && cat ../parts/./a\n",
        "settings": "A=1\n",
        "parts/a": "",
    }
    trace = _trace(tmp_path, "./run", files)
    assert "run" in _paths(trace, "run")
    assert {"run", "settings", "parts/a"} <= _paths(trace, "read")
    assert "skip" in _paths(trace, "look")
    assert "parts" in _paths(trace, "list")
    assert _paths(trace, "write") == {"listed"}
    assert trace.complete


def test_whatever_puts_another_file_in_the_place_of_one_is_a_write(tmp_path: Path) -> None:
    script = 'mv a b; ln c d; ln -s e f; rm g; mv one two; python3 -c \'open("h", "r+")\''
    trace = _trace(tmp_path, script, {**dict.fromkeys("acgh", ""), "one/x": ""})
    assert {*"abcdfgh", "one", "two"} <= _paths(trace, "write")
    assert "h" in _paths(trace, "read")


def test_a_path_through_links_is_the_path_that_they_lead_to(tmp_path: Path) -> None:
    command = "ln -s $PWD /tmp/here; cat /tmp/here/golden; cat /proc/self/cwd/second; cd /; cat workspace/third"
    trace = _trace(tmp_path, command, {"golden": "", "second": "", "third": ""})
    assert {"golden", "second", "third"} <= _paths(trace, "read")


def test_a_name_that_becomes_a_link_is_followed_from_then_on(tmp_path: Path) -> None:
    trace = _trace(tmp_path, "test -f alias; ln -s golden alias; cat alias", {"golden": ""})
    assert "golden" in _paths(trace, "read")


def test_a_program_knows_who_started_it(tmp_path: Path) -> None:
    trace = _trace(
        tmp_path, "sh ./outer; true", {"outer": "sh ./inner; true\n", "inner": "exec cat data\n", "data": ""}
    )
    (reader,) = [access.process for access in trace.accesses if access.path == "/workspace/data"]
    chain = []
    number: int | None = reader
    while number is not None:
        chain.append(trace.processes[number].words)
        number = trace.processes[number].parent
    assert chain[:3] == [("cat", "data"), ("sh", "./inner"), ("sh", "./outer")]


def test_an_open_file_that_is_asked_about_is_no_look_up_and_nothing_is_traced_unasked(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    spec = SandboxSpec(workspace=tmp_path)
    assert open_backend().start(spec).exec(["/bin/cat", "a"]).trace is None
    assert SandboxPolicy(trace_files="opened").hash != SandboxPolicy().hash


def test_a_file_that_is_open_when_a_program_begins_is_inherited(tmp_path: Path) -> None:
    command = "exec 3<golden 4>made 5<closed; cat <input & exec 5<&-; python3 -c 'open(\"own\").read()'; wait"
    trace = _trace(tmp_path, command, dict.fromkeys(("golden", "closed", "input", "own"), ""))
    python = next(number for number, process in enumerate(trace.processes) if process.words[:1] == ("python3",))
    inherited = {access.path for access in trace.accesses if access.kind == "inherit" and access.process == python}
    assert inherited == {"/workspace/golden"}
