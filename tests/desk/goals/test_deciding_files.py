"""Which files of a workspace belong to the check, and which are the product: found by running the command."""

import pytest

from gametape.core.task import TaskTests
from gametape.desk.goals.baseline import GoalBaseline, goal_task
from gametape.desk.goals.command_trace import CommandTrace
from gametape.desk.goals.deciding_files import DecidingFiles, FileRoles, find_deciding_files
from gametape.desk.goals.shell_condition import run_command
from gametape.desk.goals.success_command import read_command
from gametape.record.source_tree import SourceTree

_SHOP = "def total(prices):\n    return sum(prices) + 1\n"
_CHECK = "import sys\n\nsys.path.insert(0, '.')\nfrom shop import total\n\nsys.exit(total([1, 2]) != 3)\n"
_CHECK_A = f"import checks.a\n{_CHECK}"
_APP = "from app.core import f\n\nassert f() == 1\n"
_READS = "names = {}\nexec(open('shop.py').read(), names)\nassert names['total']([]) == 0\n"
_CASES: dict[str, tuple[str, dict[str, str], set[str]]] = {
    "a Makefile that runs Python, with a helper": (
        "make check",
        {
            "Makefile": "check:\n\tpython3 tools/check.py\n",
            "tools/check.py": f"import helper\n{_CHECK}",
            "tools/helper.py": "",
            "shop.py": _SHOP,
        },
        {"shop.py"},
    ),
    "a script that sources a file and runs Python": (
        "sh run",
        {"run": ". ./settings\npython3 check.py\n", "settings": "A=1\n", "check.py": _CHECK, "shop.py": _SHOP},
        {"shop.py"},
    ),
    "a package that checks": (
        "python3 -m checks",
        {"checks/__init__.py": "", "checks/__main__.py": _CHECK_A, "checks/a.py": "", "shop.py": _SHOP},
        {"shop.py"},
    ),
    "a package that checks what is not written yet": (
        "python3 -m checks",
        {"checks/__init__.py": "", "checks/__main__.py": _CHECK_A, "checks/a.py": ""},
        set(),
    ),
    "a package that checks itself": (
        "python3 -m app",
        {"app/__init__.py": "", "app/__main__.py": _APP, "app/core.py": "f = int\n"},
        {"app/__init__.py", "app/core.py"},
    ),
    "a golden file": (
        "make check",
        {
            "Makefile": "check:\n\tpython3 main.py >/tmp/out; diff /tmp/out want.txt\n",
            "main.py": "print(1)\n",
            "want.txt": "2\n",
        },
        {"main.py"},
    ),
    "a program that starts the product": (
        "python3 judge.py",
        {
            "judge.py": "import subprocess\nimport sys\n\nsys.exit(subprocess.call([sys.executable, 'answer.py']))\n",
            "answer.py": "raise SystemExit(1)\n",
        },
        {"answer.py"},
    ),
    "a program that reads the product": (
        "python3 judge.py",
        {"judge.py": _READS, "shop.py": _SHOP},
        {"shop.py"},
    ),
    "JavaScript": (
        "node judge.js",
        {"judge.js": "process.exit(require('./lib/shop').total() - 3)\n", "lib/shop.js": "exports.total = () => 4\n"},
        {"lib/shop.js"},
    ),
    "Perl": (
        "make",
        {
            "Makefile": "all:\n\tperl one.pl\n",
            "one.pl": "require './shop.pl'; exit(total() != 3);\n",
            "shop.pl": "sub total { 4 } 1;\n",
        },
        {"shop.pl"},
    ),
    "C": (
        "make check",
        {
            "Makefile": "check:\n\tcc -o /tmp/t test_shop.c shop.c && /tmp/t\n",
            "test_shop.c": '#include "shop.h"\nint main(void) { return total() != 3; }\n',
            "shop.c": "int total(void) { return 4; }\n",
            "shop.h": "int total(void);\n",
        },
        {"shop.c", "shop.h"},
    ),
    "a product that is a shell script": (
        "sh outer",
        {"outer": 'test "$(sh inner)" = 3\n', "inner": "echo 4\n"},
        {"inner"},
    ),
    "a product that is a text": ("grep -q done NOTES.md", {"NOTES.md": "open\n"}, {"NOTES.md"}),
    "a tool": ("python3 -m py_compile shop.py", {"shop.py": "def (\n"}, {"shop.py"}),
    "unittest with data": (
        "python3 -m unittest discover -s tests",
        {
            "tests/test_a.py": (
                "import unittest\nfrom shop import total\n\n\nclass T(unittest.TestCase):\n"
                "    def test(self):\n        self.assertEqual(total([]), int(open('data/want').read()))\n"
            ),
            "shop.py": _SHOP,
            "data/want": "0",
        },
        {"shop.py"},
    ),
}  # fmt: skip
_SAMPLE = ("a script that sources", "a package that checks what", "a golden", "C", "a product that is a shell")


def _parts(command: str, files: dict[str, str], **said: tuple[str, ...]) -> DecidingFiles:
    tree = SourceTree({path: text.encode() for path, text in files.items()})
    baseline = GoalBaseline(test_paths=["tests"], import_roots=["."], files=[])
    task = goal_task("goal", "", tree, baseline, None, TaskTests(fail_to_pass=[], pass_to_pass=[]))
    (condition,) = read_command(command).shell_commands
    result = run_command(condition, tree, task, "all").result
    assert result.trace is not None
    assert result.exit_code not in (0, 126, 127), result.stderr
    roles = FileRoles(test_paths=("tests",), **said)
    return find_deciding_files(CommandTrace(result.trace, tree), roles, result.stdout + result.stderr)


@pytest.mark.parametrize(
    "name",
    [name if name.startswith(_SAMPLE) else pytest.param(name, marks=pytest.mark.slow) for name in _CASES],
)
def test_the_product_is_what_the_check_imports_compiles_or_starts(name: str) -> None:
    command, files, product = _CASES[name]
    parts = _parts(command, files)
    assert parts.product == product
    assert parts.pinned == {*files} - product


def test_the_user_has_the_last_word() -> None:
    files = {"run": "python3 main.py\n", "main.py": _CHECK, "shop.py": _SHOP, "limits.txt": "", "data/a": ""}
    files["main.py"] = f"open('limits.txt')\nopen('data/a')\n{_CHECK}"
    assert _parts("sh run", files).product == {"shop.py"}
    said = _parts("sh run", files, product=("main.py", "data"), pinned=("shop.py",))
    assert said.product == {"main.py", "data/a"}
    assert "shop.py" in said.pinned
