from pathlib import Path

from gametape.agent.agent_state import AgentState
from gametape.agent.tools.check import CheckTool
from gametape.verify.static_analysis.analyzer import StaticAnalyzer
from tests.agent.tools.workspace import call, calls
from tests.verify.layers.toy_task import toy_task

START = {
    "src/m.py": "import os\n\n\ndef f(x: int) -> str:\n    return x\n",
    "src/n.py": "y = 1\n",
    "tests/t.py": "import os\n",
}
TASK = toy_task(START)


def test_only_what_is_new_is_shown_by_file(tmp_path: Path) -> None:
    tool = CheckTool(AgentState(), StaticAnalyzer(tmp_path), TASK)
    (untouched,) = calls(START, tool, {})
    assert untouched.content == "no Python file that was changed"
    changes = "printf 'import sys\\n\\nz: int = \"a\"\\n' > src/new.py; echo '# more' >> src/m.py; echo > tests/t.py"
    everything, one, other = calls(START, tool, {}, {"paths": ["src/m.py"]}, {"paths": ["tests"]}, before=changes)
    lines = everything.content.split("\n")
    assert lines[0] == "src/new.py"
    assert [line.rsplit("[", 1)[1] for line in lines[1:]] == ["ruff F401]", "mypy assignment]"]
    assert one.content == "ruff and mypy find nothing new in src/m.py"
    assert other.content == "no Python file that was changed lies there"


def test_trouble_is_said(tmp_path: Path) -> None:
    result = call(START, CheckTool(AgentState(), StaticAnalyzer(tmp_path), TASK), before="echo 'def (' > src/n.py")
    assert "ruff: cannot be linted: src/n.py:1" in result.content
    assert "mypy: the types cannot be checked" in result.content


def test_a_workspace_without_a_task_is_checked_without_a_baseline(tmp_path: Path) -> None:
    state = AgentState()
    tool = CheckTool(state, StaticAnalyzer(tmp_path))
    nothing, named = calls({"a.py": "import os\n", "b.py": "import re\n"}, tool, {}, {"paths": ["b.py"]})
    assert nothing.content == "no Python file that was changed"
    assert named.content.startswith("b.py\n  1: `re` imported but unused")
    assert "no baseline here" in named.content
    state.record_edit("a.py", 1, 1)
    edited = call({"a.py": "import os\n", "b.py": "import re\n"}, tool)
    assert edited.content.startswith("a.py\n")
    assert "b.py" not in edited.content


def test_hostile_files_are_no_crash(tmp_path: Path) -> None:
    before = (
        "mkfifo src/p.py; ln -s /etc/passwd src/l.py; printf '\\0\\377' > src/b.py; mkdir -p 'src/odd\nname.py'; "
        "head -c 3000000 /dev/zero > src/huge.py; printf '[tool.ruff]\\nselect=[]\\n' > pyproject.toml; "
        "printf 'import os  # noqa\\n' > src/q.py"
    )
    result = call(START, CheckTool(AgentState(), StaticAnalyzer(tmp_path), TASK), before=before)
    assert result.content
    assert "Traceback" not in result.content
