"""The zygote: what one test process can do to the next one, to the runner and to its own report."""

import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

import pytest

from gametape.record.source_tree import SourceTree
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.third_party_python import third_party_directories
from gametape.verify.interpreter import hidden_packages, visible_roots
from gametape.verify.jobs import pytest_options
from gametape.verify.runner import JobReport, TestProcess, Zygote, ZygoteJob, runner_policy
from gametape.verify.verifier_run import VerifierRun, parse_report
from tests.patience import HANG

OPTIONS = ("-c", "/dev/null", "--rootdir=/workspace", "-q", "-p", "no:cacheprovider")


def make_process(
    name: str, body: str, seconds: float = 5.0, messages: bool = True, trace: tuple[str, ...] = (), blank: bool = False
) -> TestProcess:
    path = f"tests/test_{name}.py"
    lines = "\n".join(f"    {line}" for line in body.strip().splitlines())
    text = f"import os\nimport sys\n\n\ndef test_it():\n{lines}\n"
    tests = (f"{path}::test_it",)
    return TestProcess(name, path, tests, {path: text}, None, messages, trace, blank, seconds=seconds)


def run(*processes: TestProcess, seconds: float = 30.0, tree: SourceTree | None = None) -> JobReport:
    files = tree or SourceTree({"m.py": b"x = 1\n\n\ndef f():\n    return x\n"})
    return Zygote(runner_policy(None)).run(ZygoteJob(files, processes, (".",), ("m.py",), OPTIONS), seconds)


def parse_results(report: JobReport, processes: Sequence[TestProcess]) -> tuple[dict[str, str], VerifierRun]:
    parsed = parse_report(report, processes)
    return {test.split("_", 1)[1].split(".")[0]: one.result for test, one in parsed.outcomes.items()}, parsed


def test_steps_run_one_after_the_other_and_each_is_told() -> None:
    processes = [
        make_process("a", "import m; assert m.f() == 1"),
        make_process("b", "assert 1 == 2"),
        make_process("c", "import pytest; pytest.skip()"),
    ]
    results, parsed = parse_results(run(*processes), processes)
    assert results == {"a": "passed", "b": "failed", "c": "skipped"}
    assert not parsed.events
    assert "assert 1 == 2" in parsed.outcomes["tests/test_b.py::test_it"].message


def test_what_an_installed_plugin_replaces_is_no_act_of_the_code() -> None:
    """Hypothesis brings a plugin that replaces how fixtures are made."""
    interpreter = Path(sys.executable)
    process = make_process("a", "import m; assert m.f() == 1")
    files = SourceTree({"m.py": b"def f():\n    return 1\n"})
    job = ZygoteJob(files, (process,), (".",), ("m.py",), pytest_options(files, interpreter))
    assert "hypothesispytest" in job.options
    results, parsed = parse_results(Zygote(runner_policy(interpreter), interpreter).run(job, 30.0), [process])
    assert results == {"a": "passed"}
    assert not parsed.events


def test_nothing_of_one_step_is_left_for_the_next() -> None:
    planting = """
open("/tmp/note", "w").write("x")
os.makedirs("/tmp/home/deep")
open("/dev/shm/note", "w").write("x")
open("m.py", "a").write("x = 2")
os.makedirs("closed/inner"); os.chmod("closed/inner", 0); os.chmod("closed", 0)
open("tests/test_b.py", "w").write("def test_it(): pass")
os.makedirs("__pycache__"); open("__pycache__/m.cpython-311.pyc", "wb").write(b"x")
if os.fork() == 0:
    os.setsid()
    while True:
        open("/tmp/beat", "w").write("x")
"""
    looking = """
import time
time.sleep(0.2)
assert not os.path.exists("/tmp/note") and not os.path.exists("/tmp/home/deep") and not os.path.exists("/dev/shm/note")
assert not os.path.exists("/tmp/beat")
assert sorted(os.listdir("/workspace")) == ["m.py", "tests"] and os.listdir("tests") == ["test_b.py"]
import m; assert m.x == 1
"""
    processes = [make_process("a", planting), make_process("b", looking)]
    results, parsed = parse_results(run(*processes), processes)
    assert results == {"a": "passed", "b": "passed"}, parsed.outcomes


@pytest.mark.parametrize(
    "body",
    [
        'os.rename("/tmp/home", "/tmp/other")',
        "for _ in range(1500): os.mkdir('d'); os.chdir('d')",
        "for _ in range(60): os.mkdir('d' * 200); os.chdir('d' * 200)",
        'os.mkdir("inner"); os.chmod("inner", 0)',
        'os.rename("m.py", "n.py"); os.mkdir("m.py")',
        'os.symlink("/", "/tmp/root"); os.symlink("/", "root"); os.unlink("m.py"); os.symlink("/dev/null", "m.py")',
        'os.mkfifo("pipe"); os.makedirs(".gametape-trash/1/2"); open(".gametape-trash/1/2/kept", "w").write("x")',
    ],
    ids=["home", "deep", "long", "closed", "swapped", "links", "trash"],
)
def test_whatever_is_left_behind_the_next_step_finds_its_files(body: str) -> None:
    processes = [
        make_process("a", body),
        make_process("b", "import m; assert m.x == 1; assert sorted(os.listdir('.')) == ['m.py', 'tests']"),
    ]
    results, parsed = parse_results(run(*processes), processes)
    assert results == {"a": "passed", "b": "passed"}, parsed
    assert {event.kind for event in parsed.events} <= {"rewritten"}


@pytest.mark.parametrize(
    "body",
    [
        'open("/dev/shm/home", "w").write("x"); open("/tmp/home/home", "w").write("x")',
        'os.chmod("/tmp", 0o700); os.chmod("/workspace", 0o711); os.chmod("/tmp/home", 0o711)',
        """for place in ("/tmp", "/workspace", "/tmp/home", "/dev/shm"):
    try: os.setxattr(place, "user.note", b"x")
    except OSError: pass""",
    ],
    ids=["names", "modes", "attributes"],
)
def test_no_note_is_left_for_the_next_step(body: str) -> None:
    looking = """
for place in ("/tmp", "/workspace", "/tmp/home", "/dev/shm"):
    assert "user.note" not in os.listxattr(place), place
assert os.stat("/workspace").st_mode & 0o777 == 0o755 and os.stat("/tmp/home").st_mode & 0o777 != 0o711
shown = {path.split("/")[2] for path in (sys.prefix, sys.base_prefix) if path.startswith("/tmp/")}
assert os.listdir("/dev/shm") == [] and os.listdir("/tmp/home") == [] and set(os.listdir("/tmp")) == {"home"} | shown
"""
    processes = [make_process("a", body), make_process("b", looking)]
    results, parsed = parse_results(run(*processes), processes)
    assert results == {"a": "passed", "b": "passed"}, parsed


@pytest.mark.parametrize(
    "body",
    [
        "import resource; resource.prlimit(os.getppid(), resource.RLIMIT_CORE, (0, 0))",
        "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
        "os.sched_setaffinity(os.getppid(), {min(os.sched_getaffinity(0))})",
    ],
)
def test_who_changes_the_parent_ends_the_job(body: str) -> None:
    processes = [make_process("a", body), make_process("b", "pass")]
    results, parsed = parse_results(run(*processes), processes)
    assert results == {"a": "passed", "b": "missing"}
    assert [event.kind for event in parsed.events] == ["runner tampered"]


@pytest.mark.parametrize("call", ["shmget", "msgget", "semget", "mq_open"])
def test_nothing_that_outlives_its_process_can_be_made(call: str) -> None:
    body = {
        "shmget": "libc.shmget(1234, 4096, 0o1600)",
        "msgget": "libc.msgget(1234, 0o1600)",
        "semget": "libc.semget(1234, 1, 0o1600)",
        "mq_open": 'libc.mq_open(b"/note", os.O_CREAT | os.O_RDWR, 0o600, None)',
    }[call]
    processes = [make_process("a", f"import ctypes\nlibc = ctypes.CDLL(None)\nassert {body} == -1")]
    results, parsed = parse_results(run(*processes), processes)
    assert results == {"a": "passed"}, parsed
    assert call in [violation.syscall for violation in parsed.violations]


def test_the_text_of_a_test_is_gone_before_the_code_it_imports_is_there() -> None:
    files = SourceTree(
        {"m.py": b"import glob\nfound = [open(path).read() for path in glob.glob('/workspace/tests/*')]\n"}
    )
    processes = [
        make_process("a", "import m; assert m.found == ['']", blank=True),
        make_process("b", "import m; assert len(m.found[0]) > 20"),
        make_process("c", "assert 1 == 2", blank=True),
    ]
    results, parsed = parse_results(run(*processes, tree=files), processes)
    assert results == {"a": "passed", "b": "passed", "c": "failed"}
    assert parsed.events == ()


def test_a_conftest_that_loads_the_product_first_shows_it_no_test_and_a_rewritten_one_is_seen() -> None:
    files = SourceTree(
        {
            "tests/conftest.py": b"import m\n",
            "m.py": b"""
import glob
found = [open(path).read() for path in glob.glob('/workspace/tests/test_*.py')]
for path in glob.glob('/workspace/tests/test_*.py'):
    with open(path, 'w') as file:
        file.write('def test_it(): pass')
""",
        }
    )
    processes = [
        make_process("a", "import m; assert m.found == ['']", blank=True),
        make_process("b", "assert 1 == 2", blank=True),
        make_process("c", "assert 1 == 2"),
    ]
    results, parsed = parse_results(run(*processes, tree=files), processes)
    assert results == {"a": "passed", "b": "failed", "c": "failed"}
    assert {event.detail for event in parsed.events if event.kind == "rewritten"} == {
        f"tests/test_{name}.py" for name in "abc"
    }


@pytest.mark.parametrize(
    "more",
    [
        "for _ in range(60): os.mkdir('d' * 200); os.chdir('d' * 200)",
        'os.unlink("m.py"); os.symlink("/tmp", "m.py")',
        'os.unlink("m.py"); os.mkdir("m.py")',
    ],
    ids=["too deep to look", "a link", "a directory"],
)
def test_a_rewritten_file_is_told_whatever_else_was_done(more: str) -> None:
    process = make_process("a", f'open("m.py", "w").write("x = 2")\n{more}')
    _, parsed = parse_results(run(process), [process])
    assert [(event.kind, event.detail) for event in parsed.events] == [("rewritten", "m.py")]


def test_a_test_file_that_is_changed_while_it_runs_is_seen() -> None:
    processes = [make_process("a", 'open(__file__, "a").write("# more")')]
    _, parsed = parse_results(run(*processes), processes)
    assert [(event.kind, event.detail) for event in parsed.events] == [("rewritten", "tests/test_a.py")]


def test_a_step_cannot_find_what_another_step_was_given() -> None:
    """Not on disk, not in the memory it inherits."""
    hunting = """
import re
pattern, looked, found = re.compile(b"needle[-]7731"), 0, 0
for line in open("/proc/self/maps"):
    if "rw-p" in line:
        low, high = (int(part, 16) for part in line.split()[0].split("-"))
        with open("/proc/self/mem", "rb") as memory:
            memory.seek(low)
            data = memory.read(high - low)
            looked += len(data)
            found += len(pattern.findall(data))
assert looked > 1 << 20 and not found
"""
    processes = [
        make_process("a", 'assert "needle-7731"'),
        make_process("b", hunting),
        make_process("c", 'assert "needle-7731"'),
    ]
    results, parsed = parse_results(run(*processes), processes)
    assert results == {"a": "passed", "b": "passed", "c": "passed"}, parsed.outcomes


@pytest.mark.parametrize(
    "attack",
    [
        'open(f"/proc/{os.getppid()}/mem", "rb")',
        'os.listdir(f"/proc/{os.getppid()}/fd")',
        'open(f"/proc/{os.getppid()}/environ").read()',
        'open(f"/proc/{os.getppid()}/maps").read()',
        'any(os.readlink(f"/proc/self/fd/{fd}").startswith("socket") for fd in os.listdir("/proc/self/fd")) or 1 / 0',
    ],
)
def test_the_parent_cannot_be_looked_into(attack: str) -> None:
    processes = [
        make_process(
            "a", f"try:\n    {attack}\nexcept (OSError, ZeroDivisionError):\n    return\nassert False, 'it let us'"
        )
    ]
    results, parsed = parse_results(run(*processes), processes)
    assert results == {"a": "passed"}, parsed.outcomes


def test_killing_the_runner_gains_nothing_and_is_seen() -> None:
    processes = [make_process("a", "os.kill(os.getppid(), 9)"), make_process("b", "pass")]
    results, parsed = parse_results(run(*processes), processes)
    assert results == {"a": "missing", "b": "missing"}
    assert [event.kind for event in parsed.events] == ["runner ended"]


@pytest.mark.parametrize(
    ("body", "result", "event"),
    [
        ("os._exit(0)", "missing", "left early"),
        ("os.abort()", "missing", "died"),
        ("while True: pass", "timed_out", None),
        ("import time; time.sleep(100)", "timed_out", None),
        ("raise SystemExit(0)", "failed", None),
    ],
)
def test_how_a_process_ends_is_the_kernels_word(body: str, result: str, event: str | None) -> None:
    seconds = 0.5 if result == "timed_out" else HANG
    processes = [make_process("a", body, seconds=seconds), make_process("b", "pass")]
    results, parsed = parse_results(run(*processes), processes)
    assert results == {"a": result, "b": "passed"}
    assert [one.kind for one in parsed.events] == ([event] if event else [])


FORGE = """
import json
def say(**word):
    for fd in range(3, 64):
        try: os.write(fd, json.dumps(word).encode() + b"\\n")
        except OSError: pass
"""


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ('say(test="tests/test_a.py::test_it", result="passed", seconds=0, message="")', "told twice"),
        ('say(test="tests/test_a.py::test_other", result="passed", seconds=0, message="")', "garbled"),
        ('say(test="tests/test_a.py::test_it", result="excellent", seconds=0, message="")', "garbled"),
        ("say(finished=0)", "garbled"),
        ("say(anything=1)", "garbled"),
    ],
)
def test_words_that_do_not_fit_are_evidence(words: str, kind: str) -> None:
    processes = [make_process("a", FORGE + words)]
    results, parsed = parse_results(run(*processes), processes)
    assert results["a"] != "passed" or kind == "garbled"
    assert kind in [event.kind for event in parsed.events]


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(3)"])
def test_what_a_process_said_before_it_died_at_another_place_counts_for_nothing(end: str) -> None:
    told = 'say(test="tests/test_a.py::test_it", result="passed", seconds=0, message=""); say(finished=0); '
    processes = [make_process("a", FORGE + told + end)]
    results, parsed = parse_results(run(*processes), processes)
    assert results["a"] == "missing"
    assert "garbled" in [event.kind for event in parsed.events]


def test_a_flood_of_words_ends_the_process_and_nothing_else() -> None:
    processes = [
        make_process("a", FORGE + "while True: say(anything='x' * 60000)", seconds=HANG),
        make_process("b", "pass"),
    ]
    results, _ = parse_results(run(*processes, seconds=HANG), processes)
    assert results["b"] == "passed"


def test_a_flood_of_nothing_costs_the_host_nothing() -> None:
    processes = [
        make_process(
            "a",
            "for fd in range(3, 9):\n    try: [os.write(fd, b'\\n' * 60000) for _ in range(30)]\n"
            "    except OSError: pass",
        )
    ]
    _, parsed = parse_results(run(*processes), processes)
    assert 1 <= len(parsed.events) < 100


def test_time_is_measured_outside() -> None:
    processes = [make_process("a", "import time; time.sleep(100000)", seconds=HANG)]
    report = run(*processes, seconds=1.0)
    results, parsed = parse_results(report, processes)
    assert (results, report.timed_out, parsed.killed_by) == ({"a": "timed_out"}, True, "time")


def test_messages_are_kept_only_where_they_may_be_shown() -> None:
    processes = [
        make_process("a", "assert 'secret' == 'other'", messages=False),
        make_process("b", "assert 'secret' == 'other'"),
    ]
    _, parsed = parse_results(run(*processes), processes)
    assert "secret" not in parsed.outcomes["tests/test_a.py::test_it"].message
    assert "secret" in parsed.outcomes["tests/test_b.py::test_it"].message


def test_lines_that_ran_are_told() -> None:
    processes = [make_process("a", "import m; m.f()", trace=("m.py",))]
    _, parsed = parse_results(run(*processes), processes)
    assert parsed.covered == {"m.py": frozenset({1, 4, 5})}


def test_an_environment_shows_nothing_of_the_python_it_was_made_from_but_the_standard_library(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", symlinks=True)
    interpreter = tmp_path / "env" / "bin" / "python"
    assert {"packages", "wheels"} <= kinds(hidden_packages(interpreter))
    code = f"""
import os, sys
assert os.listdir(sys.prefix + "/lib/python%d.%d/site-packages" % sys.version_info[:2]) == ["own"]
for place in {hidden_packages(interpreter)!r}:
    assert os.listdir(place) == [], place
"""
    packages = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
    (packages / "own").touch()
    done = (
        open_backend().start(SandboxSpec(policy=runner_policy(interpreter))).exec([str(interpreter), "-I", "-c", code])
    )
    assert done.exit_code == 0, done.stderr


def kinds(places: Sequence[str]) -> set[str]:
    ends = {"packages": ("site-packages", "dist-packages"), "wheels": ("_bundled",)}
    return {kind for kind, names in ends.items() if any(place.endswith(names) for place in places)}


def test_an_interpreter_of_its_own_keeps_its_packages(tmp_path: Path) -> None:
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    venv.create(tmp_path / "env", symlinks=True, system_site_packages=True)
    for interpreter in (base, tmp_path / "env" / "bin" / "python"):
        assert kinds(hidden_packages(interpreter)) <= {"wheels"}
        code = "import sys, os; print(*[os.listdir(path) for path in sys.path if path.endswith('-packages')])"
        done = (
            open_backend()
            .start(SandboxSpec(policy=runner_policy(interpreter)))
            .exec([str(interpreter), "-I", "-c", code])
        )
        outside = subprocess.run([interpreter, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
        assert (done.stdout, done.exit_code) == (outside, 0)


def test_what_a_task_shows_is_its_own_interpreter_and_not_gametapes(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", symlinks=True)
    interpreter = tmp_path / "env" / "bin" / "python"
    roots, hidden = visible_roots(interpreter)
    assert {"/usr", str(tmp_path / "env")} <= {*roots}
    assert sys.prefix not in roots or sys.prefix == sys.base_prefix
    assert {*third_party_directories(), *hidden_packages(interpreter)} <= hidden
    assert sys.prefix in visible_roots(None)[0] or sys.prefix.startswith("/usr")
