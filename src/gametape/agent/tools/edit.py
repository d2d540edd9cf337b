"""The tool `edit`: replace one exact piece of a file. Errors show the nearest text, or all places where it occurs."""

import asyncio
import difflib
from typing import Any

from gametape.agent import text_file
from gametape.agent.agent_state import AgentState
from gametape.agent.tools import paths
from gametape.agent.tools.argument_schema import parameters_schema
from gametape.agent.tools.tool import ValidatedTool
from gametape.agent.tools.write import write_file
from gametape.core.errors import BadInput
from gametape.core.messages import ToolResult
from gametape.core.protocols import Workspace

_CONTEXT = 4
_MOST_SHOWN = 60
_MOST_PLACES = 12
_MOST_SEARCHED = 10_000
"""Lines of a file that are searched for the nearest region."""
_MOST_CANDIDATES = 200
_ALIKE = 0.5


class EditTool(ValidatedTool):
    """Keeps the line ends and the encoding of the file."""

    name = "edit"
    description = (
        "Replace an exact piece of a file. `old` must occur exactly once, white space included, so take enough lines "
        "around the change; with all=true every occurrence is replaced."
    )
    parameters = parameters_schema(
        ("path", "old", "new"),
        path={"type": "string", "minLength": 1, "description": "Relative to the workspace."},
        old={"type": "string", "minLength": 1, "description": "The text as it is in the file, without line numbers."},
        new={"type": "string", "description": "The text that takes its place."},
        all={"type": "boolean", "description": "Replace every occurrence."},
    )

    def __init__(self, state: AgentState) -> None:
        self._state = state

    async def act(self, arguments: dict[str, Any], workspace: Workspace) -> ToolResult:
        path, old, new = paths.normalize_path(arguments["path"]), arguments["old"], arguments["new"]
        if old == new:
            raise BadInput("old and new are the same; nothing would change")
        file = await self._open(workspace, path)
        if file.newline == "\r\n":
            old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
        count = file.body.count(old)
        if count == 0:
            raise BadInput(f"old does not occur in {path}{await asyncio.to_thread(describe_nearest, file.body, old)}")
        if count > 1 and not arguments.get("all"):
            listed = ", ".join(map(str, _lines_of(file.body, old)[:_MOST_PLACES]))
            more = ", ..." if count > _MOST_PLACES else ""
            raise BadInput(
                f"old occurs {count} times in {path}, at lines {listed}{more}; take more lines around it, or all=true"
            )
        first = _lines_of(file.body, old)[0]
        after = file.with_body(file.body.replace(old, new))
        await write_file(workspace, path, after.encode())
        self._state.record_edit(path, count * _height(new), count * _height(old))
        self._state.open_file(path, first)
        times = f" in {count} places" if count > 1 else ""
        window = text_file.number_lines(
            after.lines, max(1, first - _CONTEXT), min(_MOST_SHOWN, _height(new) + 2 * _CONTEXT)
        )
        return ToolResult(content=f"{path} edited{times}\n{window}")

    async def _open(self, workspace: Workspace, path: str) -> text_file.TextFile:
        try:
            file = text_file.decode_text(await workspace.get(path))
        except BadInput as error:
            if paths.is_missing(error):
                raise BadInput(f"there is no {path}{await paths.similar_names(workspace, path)}") from error
            if paths.is_directory(error):
                raise BadInput(f"{path} is no regular file") from error
            raise paths.explain_error(error, path) from error
        if file is None:
            raise BadInput(f"{path} is not text; it cannot be edited")
        return file


def describe_nearest(body: str, old: str) -> str:
    """The region of the file that is most like `old`, as the end of a sentence."""
    lines, wanted = body.split("\n")[:_MOST_SEARCHED], old.strip("\n").split("\n")
    if bare := _bare_match(lines, wanted):
        return f", but it does with other white space; as it is, from line {bare}:\n{_region(lines, bare, len(wanted))}"
    start = _most_alike(lines, wanted)
    if start is None:
        return ", nor anything like it; read the file first"
    return f"; most like it, from line {start}:\n{_region(lines, start, len(wanted))}"


def _bare_match(lines: list[str], wanted: list[str]) -> int | None:
    """The first line of a region that is equal but for white space."""
    plain, target = ["".join(line.split()) for line in lines], ["".join(line.split()) for line in wanted]
    for index in range(len(plain) - len(target) + 1):
        if plain[index] == target[0] and plain[index : index + len(target)] == target:
            return index + 1
    return None


def _most_alike(lines: list[str], wanted: list[str]) -> int | None:
    """The first line of the region that is most like `wanted`; None if no region is alike enough.

    Only regions around a line that is nearly equal to the longest wanted line are compared whole.
    """
    scored: list[tuple[float, int]] = []
    rarest = max(range(len(wanted)), key=lambda index: len(wanted[index].strip()))
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted[rarest].strip()[:500])
    for index, line in enumerate(lines):
        matcher.set_seq1(line.strip()[:500])
        if matcher.real_quick_ratio() > _ALIKE and matcher.quick_ratio() > _ALIKE:
            scored.append((matcher.quick_ratio(), max(0, index - rarest)))
    best: tuple[float, int] | None = None
    for _, start in sorted(scored, reverse=True)[:_MOST_CANDIDATES]:
        region = "\n".join(line.strip() for line in lines[start : start + len(wanted)])
        target = "\n".join(line.strip() for line in wanted)
        ratio = difflib.SequenceMatcher(None, region[:2000], target[:2000], autojunk=False).quick_ratio()
        if best is None or ratio > best[0]:
            best = (ratio, start)
    return best[1] + 1 if best and best[0] > _ALIKE else None


def _region(lines: list[str], start: int, height: int) -> str:
    """The region with tabs and trailing blanks made visible, which are often the difference."""
    region = lines[start - 1 : start - 1 + min(height, _MOST_SHOWN)]
    visible = [_visible(line) for line in region]
    note = "\n(here → is a tab, · a blank at the end of a line, ␍ a carriage return)" if visible != region else ""
    return "\n".join(text_file.sanitize_text(line)[:400] for line in visible) + note


def _visible(line: str) -> str:
    body = line.removesuffix("\r")
    bare = body.rstrip(" ")
    end = "·" * min(20, len(body) - len(bare)) + ("␍" if body != line else "")
    return bare.replace("\t", "→") + end


def _lines_of(body: str, piece: str) -> list[int]:
    """The lines at which a piece begins, counted as `str.count` counts."""
    numbers, at, line, last = [], body.find(piece), 1, 0
    while at >= 0:
        line += body.count("\n", last, at)
        numbers.append(line)
        last, at = at, body.find(piece, at + len(piece))
    return numbers


def _height(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0
