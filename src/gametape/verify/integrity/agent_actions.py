"""The actions of a trajectory's step, whatever its tools are called: commands run, programs run, files written."""

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from gametape.core.step import Step
from gametape.verify.integrity.shell_parser import ParsedCommand, parse_commands

_PATHS = ("path", "file_path", "filename", "file", "target_file", "filepath")
_CONTENTS = ("content", "contents", "file_text", "new_str", "new_string", "text", "insert_text", "code_edit")
_SCRIPTS = ("command", "cmd", "script", "bash", "shell", "keystrokes", "input", "commands")


@dataclass(frozen=True)
class AgentAction:
    """`run`: a command. `program`: Python text that was run. `write`: text that went into a file, in place of `old`."""

    kind: Literal["run", "program", "write"]
    text: str
    path: str = ""
    old_text: str | None = None
    command: ParsedCommand | None = None


def actions_of_step(step: Step) -> Iterator[AgentAction]:
    """Everything the tool calls of a step do, in order."""
    for call in step.tool_calls or []:
        yield from _acts(call.function_name.lower(), call.arguments)


def _acts(tool: str, arguments: dict[str, Any]) -> Iterator[AgentAction]:
    path = next((arguments[key] for key in _PATHS if isinstance(arguments.get(key), str)), None)
    content = next((arguments[key] for key in _CONTENTS if isinstance(arguments.get(key), str)), None)
    if path is not None and content is not None:
        old = next(
            (arguments[key] for key in ("old_str", "old_string", "old") if isinstance(arguments.get(key), str)), None
        )
        inserts = old is None and ("insert_line" in arguments or arguments.get("command") == "insert")
        yield AgentAction("write", content, path, "" if inserts else old)
        return
    if isinstance(arguments.get("code"), str) and "bash" not in tool and "shell" not in tool:
        yield AgentAction("program", arguments["code"])
    for key in (*_SCRIPTS, *(("code",) if "bash" in tool or "shell" in tool else ())):
        value = arguments.get(key)
        if isinstance(value, list) and all(isinstance(word, str) for word in value):
            shell = value[0].rsplit("/", 1)[-1] in ("bash", "sh") if value else False
            yield from _run(value[2] if shell and len(value) > 2 else " ".join(map(_quoted, value)))
        elif isinstance(value, str) and path is None:
            yield from _run(value)


def _quoted(word: str) -> str:
    return "'" + word.replace("'", "'\\''") + "'"


def _run(text: str) -> Iterator[AgentAction]:
    for command in parse_commands(text):
        yield AgentAction("run", command.text, command=command)
        if command.program.startswith("python") and "-c" in command.words[:-1]:
            yield AgentAction("program", textwrap.dedent(command.words[command.words.index("-c") + 1]))
        elif command.program.startswith("python") and command.stdin_text:
            yield AgentAction("program", command.stdin_text)
        for path in command.output_paths:
            content = command.stdin_text or (
                " ".join(command.words[1:]) if command.program in ("echo", "printf") else ""
            )
            yield AgentAction("write", content, path, None)
