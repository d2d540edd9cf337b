import json
import sys
from typing import Any

import pytest

from gametape.agent.agent_state import AgentState
from gametape.agent.inside import jump as script
from gametape.agent.tools.jump import JumpTool
from tests.agent.tools.workspace import call, calls

FILES = {
    "src/pkg/__init__.py": "from .shapes import Circle\nfrom .shapes import area as surface\n",
    "src/pkg/shapes.py": (
        "PI = 3\n\n\nclass Shape:\n    def grow(self, by):\n        return by\n\n    def name(self):\n"
        "        return self.grow(1)\n\n\nclass Circle(Shape):\n    def name(self):\n        return super().name()\n\n"
        "\ndef area(circle: Circle):\n    return PI * circle.grow(2)\n"
    ),
    "src/pkg/sub/__init__.py": "",
    "src/pkg/sub/use.py": (
        "from ..shapes import Circle as Round\nfrom .. import surface\nimport pkg.shapes\n\n\ndef main():\n"
        "    thing = Round()\n    thing.grow(3)\n    area = 1\n    return surface(thing), pkg.shapes.PI, area\n"
    ),
    "other.py": "def area():\n    return 0\n\n\narea()\n",
    "broken.py": "def area(:\n",
    "notes.txt": "area\n",
}


def jump(state: AgentState | None = None) -> JumpTool:
    return JumpTool(state or AgentState(), sys.executable)


@pytest.mark.parametrize(
    ("arguments", "definition"),
    [
        ({"symbol": "Shape"}, "src/pkg/shapes.py:4: class Shape:  (class Shape)"),
        ({"symbol": "Shape.name"}, "src/pkg/shapes.py:8: def name(self):  (method Shape.name)"),
        ({"symbol": "pkg.shapes.PI"}, "src/pkg/shapes.py:1: PI = 3  (variable PI)"),
        ({"symbol": "Round", "path": "src/pkg/sub/use.py"}, "src/pkg/shapes.py:12: class Circle(Shape):"),
        ({"symbol": "surface", "path": "src/pkg/sub/use.py"}, "src/pkg/shapes.py:17: def area(circle: Circle):"),
        ({"path": "src/pkg/sub/use.py", "line": 8, "column": 12}, "src/pkg/shapes.py:5: def grow(self, by):"),
        ({"path": "src/pkg/sub/use.py", "line": 10, "column": 39}, "src/pkg/shapes.py:1: PI = 3"),
        ({"path": "src/pkg/sub/use.py", "line": 10, "column": 47}, "src/pkg/sub/use.py:9: area = 1"),
        ({"path": "src/pkg/shapes.py", "line": 9, "column": 21}, "src/pkg/shapes.py:5: def grow(self, by):"),
        ({"path": "src/pkg/shapes.py", "line": 18, "column": 24}, "src/pkg/shapes.py:5: def grow(self, by):"),
        ({"path": "src/pkg/shapes.py", "line": 18, "column": 12}, "src/pkg/shapes.py:1: PI = 3"),
        ({"symbol": "pkg.shapes"}, "src/pkg/shapes.py:1: PI = 3  (module src.pkg.shapes)"),
    ],
)
def test_definitions(arguments: dict[str, Any], definition: str) -> None:
    state = AgentState()
    result = call(FILES, jump(state), **arguments)
    lines = [line for line in result.content.split("\n") if line != "by name only:"]
    assert lines[0].startswith(definition)
    path, line = definition.split(":")[:2]
    assert state.cursor(path) == int(line)


def test_references_follow_imports_and_names() -> None:
    area, grow, other = calls(
        FILES,
        jump(),
        {"symbol": "area", "path": "src/pkg/shapes.py", "references": True},
        {"symbol": "Shape.grow", "references": True},
        {"symbol": "area", "path": "other.py", "references": True},
    )
    assert area.content.split("references:\n")[1].split("\n")[:-1] == [
        "src/pkg/__init__.py:2: from .shapes import area as surface",
        "src/pkg/sub/use.py:2: from .. import surface",
        "src/pkg/sub/use.py:10: return surface(thing), pkg.shapes.PI, area",
    ]
    assert "[1 Python files could not be parsed and were left out]" in area.content
    places = [line.split(": ")[0] for line in grow.content.split("references:\n")[1].split("\n")[:3]]
    assert places == ["src/pkg/shapes.py:9", "src/pkg/shapes.py:18", "src/pkg/sub/use.py:8"]
    assert other.content.split("references:\n")[1].split("\n")[0] == "other.py:5: area()"
    assert "use.py" not in other.content


def test_what_leads_nowhere_is_one_line() -> None:
    nothing, nowhere, no_file, out, empty = calls(
        FILES,
        jump(),
        {"symbol": "zebra"},
        {"path": "other.py", "line": 3},
        {"path": "broken.py", "line": 1, "column": 1},
        {"path": "/etc/passwd", "line": 1},
        {},
    )
    for result in (nothing, nowhere, no_file, out, empty):
        assert result.failed
        assert "\n" not in result.content
    assert nothing.content == "jump: no definition of zebra in the workspace's Python files"


def test_a_hostile_workspace_does_not_stop_it() -> None:
    before = (
        "mkfifo pipe.py; ln -s / loop; ln -s . self; ln -s other.py link.py; "
        "python3 -c \"open('deep.py','w').write('('*100000)\"; head -c 2000000 /dev/zero > big.py; "
        "echo 'raise SystemExit' > ast.py; echo 'raise SystemExit' > json.py; printf 'from circle import x' > circle.py"
    )
    result = call(FILES, jump(), before=before, symbol="x", path="circle.py")
    assert result.failed
    result = call(FILES, jump(), before=before, symbol="area", path="other.py")
    assert result.content.startswith("other.py:1: def area():")


def test_a_forged_answer_cannot_name_a_file_outside() -> None:
    fake = "#!/bin/sh\necho '" + json.dumps({"definitions": [{"path": "../../etc/passwd", "line": 1}]}) + "'\n"
    state = AgentState()
    tool = JumpTool(state, "/workspace/python")
    result = call({"python": fake}, tool, before="chmod +x python", symbol="x")
    assert result.failed
    assert state.open == []
    for noise in ("not json", "[1]", '{"definitions": 3}', '{"definitions": [{"path": 1, "line": "x"}]}', ""):
        assert call({"python": f"#!/bin/sh\necho '{noise}'\n"}, tool, before="chmod +x python", symbol="x").failed


def test_the_script_brings_nothing_of_the_package() -> None:
    with open(script.__file__, encoding="utf-8") as file:
        assert "gametape" not in file.read()
