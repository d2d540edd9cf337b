"""The audit hook beside hostile code, each time in a process of its own."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

from gametape.verify.in_sandbox.runner_fingerprint import RunnerFingerprint

VERIFY = Path(__file__).parents[3] / "src" / "gametape" / "verify"


def reported_events(tmp_path: Path, product: str, test: str = "import product") -> list[list[object]]:
    """The events that are reported when a test imports this product."""
    sources = tmp_path / "src"
    sources.mkdir()
    (sources / "product.py").write_text(textwrap.dedent(product))
    (tmp_path / "test_it.py").write_text(test)
    program = f"""
import sys, json
sys.path[:0] = [{str(VERIFY)!r}, {str(sources)!r}, {str(tmp_path)!r}]
from in_sandbox import audit_hook
heard = []
audit_hook.install_audit_hook(lambda *words: heard.append(words), [{str(sources)!r}])
import test_it
print(json.dumps(heard))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-B", "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    events: list[list[object]] = json.loads(done.stdout.splitlines()[-1])
    return events


def test_an_act_of_the_sources_is_told_with_its_line(tmp_path: Path) -> None:
    events = reported_events(tmp_path, "import os\n\nos.listdir('/proc/1/')\nos.fork() or os._exit(0)\n")
    assert [(kind, detail, Path(str(file)).name, line) for kind, detail, file, line in events] == [
        ("os.listdir", "/proc/1/", "product.py", 3),
        ("os.fork", "", "product.py", 4),
    ]


HARMLESS = """
import ctypes, gc, marshal, os, signal, socket, subprocess, sys
gc.get_objects()
gc.get_referrers(sys)
sys.settrace(None)
sys.setprofile(None)
marshal.loads(marshal.dumps(1))
ctypes.CDLL(None).strlen(b"abc")
os.kill(os.getpid(), 0)
os.environ["MY_SETTING"] = "1"
subprocess.run(["true"])
child = subprocess.Popen(["sleep", "9"])
child.terminate()
child.wait()
with socket.socket() as server, socket.socket() as client:
    server.bind(("127.0.0.1", 0))
    server.listen()
    client.connect(server.getsockname())
open(__file__).close()
"""


def test_what_no_rule_asks_for_is_not_told(tmp_path: Path) -> None:
    assert reported_events(tmp_path, HARMLESS) == []


def test_harmless_acts_and_other_kinds_do_not_hide_what_follows(tmp_path: Path) -> None:
    product = """
    import os, subprocess
    for number in range(500):
        with open(f"test_{number}.py", "w"): pass
        subprocess.Popen(["true"]).wait() if number < 3 else None
    for path in ("/etc/hostname", "/proc/self/environ"):
        open(path).close()
    """
    events = reported_events(tmp_path, product)
    assert [detail for kind, detail, _, _ in events if kind == "open"] == ["/proc/self/environ"]


def test_a_telling_path_is_told_once_and_an_ordinary_one_never(tmp_path: Path) -> None:
    product = """
    def look(path):
        try:
            open(path).close()
        except OSError:
            pass
    for _ in range(5):
        look("/proc/self/environ")
    look("/etc/hostname")
    """
    events = reported_events(tmp_path, product)
    assert [detail for _, detail, _, _ in events] == ["/proc/self/environ"]


def test_what_a_library_does_for_the_sources_is_theirs(tmp_path: Path) -> None:
    product = "import subprocess\nsubprocess.run(['true', 'git', 'fsck'])\n"
    assert ["subprocess.Popen", "true git fsck"] in [words[:2] for words in reported_events(tmp_path, product)]


def test_what_tests_imports_and_messages_do_is_not(tmp_path: Path) -> None:
    product = """
    import json, decimal, traceback
    def fail():
        try:
            raise ValueError
        except ValueError:
            return traceback.format_exc()
    """
    test = "import product, gc, subprocess\nproduct.fail()\ngc.get_objects()\nsubprocess.run(['true'])\n"
    assert reported_events(tmp_path, product, test) == []


def test_a_fingerprint_names_what_was_replaced_and_by_whom() -> None:
    import math

    watch = RunnerFingerprint()
    assert watch.quick_changes() == watch.changes() == []
    real = math.isclose
    try:
        math.isclose = lambda *_args, **_words: True
        assert watch.quick_changes() == [f"math.isclose by {__file__}"]
    finally:
        math.isclose = real
    assert watch.changes() == []


def test_a_fingerprint_sees_a_body_that_was_swapped() -> None:
    from _pytest.runner import CallInfo, call_and_report

    watch = RunnerFingerprint()
    real = call_and_report.__code__
    try:
        call_and_report.__code__ = (lambda item, when, log=True, **words: None).__code__
        assert [name.split(" by ")[0] for name in watch.quick_changes()] == ["_pytest.runner.call_and_report"]
    finally:
        call_and_report.__code__ = real
    kept = CallInfo.__dict__["from_call"]
    try:
        CallInfo.from_call = classmethod(lambda cls, *_: None)  # type: ignore[assignment]
        assert any("CallInfo.from_call" in name for name in watch.changes())
    finally:
        CallInfo.from_call = kept
    assert watch.changes() == []
