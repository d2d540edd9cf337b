"""The tool `jump`: go from a name to its definition and its references, in Python files.

The files are parsed inside the sandbox, never here, and by the standard library alone: an installed library would show
the agent third-party code, which may be the very code that a task asks for.
"""

import importlib.resources
import json
from typing import Any

from gametape.agent.agent_state import AgentState
from gametape.agent.text_file import sanitize_text
from gametape.agent.tools import paths
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool, run_program
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import ShellResult, Workspace

_SECONDS = 30.0
_MOST_DEFINITIONS, _MOST_REFERENCES = 10, 40


class JumpTool(ValidatedTool):
    """`python` is the interpreter inside the sandbox. The first definition is opened in the agent's state."""

    name = "jump"
    description = (
        "Go to the definition of a Python name: by symbol (such as Class.method; with path as seen from that file), "
        "or by path, line and column. With references=true also list where it is used."
    )
    parameters = parameters_schema(
        symbol={"type": "string", "minLength": 1, "maxLength": 200, "description": "A name, dotted if need be."},
        path={"type": "string", "minLength": 1, "description": "A Python file, relative to the workspace."},
        line={"type": "integer", "minimum": 1},
        column={"type": "integer", "minimum": 1},
        references={"type": "boolean", "description": "Also list references."},
    )

    def __init__(self, state: AgentState, python: str) -> None:
        self._state = state
        self._python = python
        self._script = importlib.resources.files("gametape.agent.inside").joinpath("jump.py").read_text("utf-8")

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        query = dict(arguments)
        if "path" in query:
            query["path"] = paths.normalize_path(query["path"])
        if "symbol" not in query and not {"path", "line"} <= query.keys():
            raise BadInput("give a symbol, or a path and a line (and a column)")
        argv = [self._python, "-I", "-X", "utf8", "-c", self._script, json.dumps(query)]
        result = await run_program(workspace, argv, _SECONDS)
        answer = _read(result)
        definitions = _locations(answer, "definitions")
        if not definitions:
            raise BadInput(
                f"no definition of {sanitize_text(str(answer.get('symbol')))[:200]} in the workspace's Python files"
            )
        self._state.open_file(definitions[0]["path"], definitions[0]["line"])
        return ToolResult(content=_describe(answer, definitions), cpu_seconds=result.cpu_seconds)


def _read(result: ShellResult) -> dict[str, Any]:
    """The script's answer. Code in the sandbox can forge it, so it is checked like any input."""
    if result.killed_by:
        raise BadInput(f"the search for definitions was ended ({result.killed_by}); use search")
    try:
        answer = json.loads(result.stdout)
    except (ValueError, RecursionError):
        answer = None
    if not isinstance(answer, dict):
        reason = (result.stderr.strip().splitlines() or ["no answer"])[-1]
        raise BadInput(f"definitions cannot be looked up here: {reason[:200]}; use search")
    if problem := answer.get("problem"):
        raise BadInput(sanitize_text(str(problem))[:300])
    return answer


def _locations(answer: dict[str, Any], key: str) -> list[dict[str, Any]]:
    entries = answer.get(key)
    valid = [entry for entry in entries if _is_location(entry)] if isinstance(entries, list) else []
    return [{**entry, "path": paths.normalize_path(entry["path"])} for entry in valid]


def _is_location(entry: Any) -> bool:
    if not isinstance(entry, dict):
        return False
    path, line = entry.get("path"), entry.get("line")
    return isinstance(path, str) and "\n" not in path and "\0" not in path and type(line) is int and line >= 1


def _describe(answer: dict[str, Any], definitions: list[dict[str, Any]]) -> str:
    lines = [] if answer.get("followed") else ["by name only:"]
    lines += [
        f"{_line(definition)}  ({definition.get('kind')} {definition.get('name')})"
        for definition in definitions[:_MOST_DEFINITIONS]
    ]
    lines += _more(len(definitions), _MOST_DEFINITIONS, answer.get("count"))
    for key, title in (("references", "references"), ("possible", "possible references, by name only")):
        if key in answer:
            locations = _locations(answer, key)
            if locations or key == "references":
                lines.append(f"{title}:" if locations else "no references")
            lines += map(_line, locations[:_MOST_REFERENCES])
            lines += _more(len(locations), _MOST_REFERENCES, answer.get(f"{key}_count"))
    if answer.get("unread"):
        lines.append(f"[{answer['unread']} Python files could not be parsed and were left out]")
    return sanitize_text("\n".join(lines))


def _line(location: dict[str, Any]) -> str:
    return f"{location['path']}:{location['line']}: {str(location.get('text', ''))[:200]}"


def _more(listed: int, limit: int, count: Any) -> list[str]:
    rest = (count if type(count) is int else listed) - min(listed, limit)
    return [f"... and {rest} more"] if rest > 0 else []
