"""What is worth telling of the files that an agent changed and that a command asks for. None of it accuses anybody."""

import re
from collections.abc import Collection, Iterable

from gametape.desk.goals.command_trace import CommandTrace
from gametape.desk.goals.deciding_files import is_source
from gametape.desk.goals.minimum_counts import imported_modules
from gametape.desk.goals.written_results import runs_product
from gametape.record.source_tree import SourceTree, parent_directories

_EXAMPLE = re.compile(rb"^\s*>>> ", re.MULTILINE)
_SETTINGS = re.compile(r"(^|/)\.[^/]+$|\.(toml|cfg|ini|lock)$")
"""Settings of tools: most of what they say decides nothing."""
_SILENCES = re.compile(
    rb"\bnoqa\b|\b(type|mypy|pyright|pyre|ty|codespell|hadolint|istanbul|c8)\s?:?\s*ignore|pylint:\s*(disable|skip)|"
    rb"flake8[:=]|\bnosec\b|pragma:?\s*no|eslint-disable|biome-ignore|stylelint-disable|markdownlint-disable|"
    rb"yamllint\s+disable|shellcheck\s+disable|rubocop:\s*disable|@ts-(ignore|nocheck|expect-error)|\bno_?lint\b|"
    rb"#!?\[allow\(|@SuppressWarnings|GCC diagnostic ignored|noinspection|phpcs:\s*(ignore|disable)|@phpstan-ignore",
    re.IGNORECASE,
)
"""Words in a source by which a linter, a type checker or a coverage tool is told not to look."""


def check_data_read_by_product(trace: CommandTrace, pinned: Collection[str]) -> set[str]:
    """Data of the check that processes read which run other files of the workspace than those of the check."""
    return {
        path
        for path, numbers in trace.read_by.items()
        if path in pinned
        and not is_source(path, trace.tree.files[path])
        and any(runs_product(trace, number, pinned) for number in numbers)
    }


def data_for_check(trace: CommandTrace, candidates: Collection[str], pinned: Collection[str]) -> set[str]:
    """Those of some data that programs ask for which run no code of the product, and that no shell reads."""
    found = set()
    for path in candidates:
        looking = trace.looked_at_by.get(path, set())
        others = [number for number in looking if not trace.runs_instructions(number)]
        told = any(map(trace.runs_instructions, trace.read_by.get(path, ()))) or path in trace.scripts.values()
        if not told and not is_source(path, trace.tree.files[path]) and not _SETTINGS.search(path):
            found |= {path} if any(not runs_product(trace, one, pinned) for one in others) else set()
    return found


def made_for_check(trace: CommandTrace, looked_for: Collection[str], pinned: Collection[str]) -> set[str]:
    """Paths that the check looked for before anything was there, and that processes of the product write."""
    return {
        path
        for path, numbers in trace.made_by.items()
        if path in looked_for
        and any(runs_product(trace, number, pinned) for number in numbers)
        and any(not runs_product(trace, number, pinned) for number in trace.looked_at_by.get(path, ()))
    }


def check_data_open_to_product(trace: CommandTrace, pinned: Collection[str]) -> set[str]:
    """Data of the check that are open when a program begins which runs or reads a file of the product."""
    reads: set[int] = set()
    for path, numbers in trace.read_by.items():
        reads |= set() if path in pinned else numbers
    return {
        path
        for path, numbers in trace.inherited_by.items()
        if path in pinned
        and not is_source(path, trace.tree.files[path])
        and any(number in reads or runs_product(trace, number, pinned) for number in numbers)
    }


def wanted_before(added: Iterable[str], looked_for: Collection[str], check: SourceTree) -> set[str]:
    """Added files that the command looked for before they were there, or that a Python file of the check imports."""
    imported = {
        name.replace(".", "/") for path in check if path.endswith(".py") for name in imported_modules(check.files[path])
    }
    return {
        path
        for path in added
        if path in looked_for or path.removesuffix("/__init__.py").removesuffix(".py").removeprefix("src/") in imported
    }


def lost_examples(start: SourceTree, files: SourceTree, read: Iterable[str]) -> set[str]:
    """Files with fewer examples for `doctest` than before."""
    return {
        path
        for path in read
        if path in start
        and len(_EXAMPLE.findall(files.files.get(path, b""))) < len(_EXAMPLE.findall(start.files[path]))
    }


def silenced(start: SourceTree, files: SourceTree, read: Iterable[str]) -> set[str]:
    """Files with more words than before that tell a tool not to look."""
    return {
        path
        for path in read
        if len(_SILENCES.findall(files.files.get(path, b""))) > len(_SILENCES.findall(start.files.get(path, b"")))
    }


def by_notice(paths: Iterable[str], traces: Iterable[CommandTrace], files: SourceTree) -> list[str]:
    """The paths, first those that a command can have noticed without opening them: it looked for them or for a
    directory above them, or it listed their directory. Of those, removed ones come first."""
    asked: set[str] = set()
    listed: set[str] = set()
    for trace in traces:
        asked |= {*trace.looked_at_by}
        listed |= trace.listed
    return sorted(
        paths,
        key=lambda path: (
            (asked - listed).isdisjoint({path, *parent_directories(path)}),
            path.rpartition("/")[0] not in listed,
            path in files,
            path,
        ),
    )


def by_weight(paths: Iterable[str], start: SourceTree, files: SourceTree, wanted: Collection[str]) -> list[str]:
    """The paths, first those that most likely decide: what the command looked for before, then data, then code that was
    there before; empty files last."""
    return sorted(
        paths,
        key=lambda path: (
            path not in wanted,
            not files.files.get(path, b"").strip(),
            path not in start,
            is_source(path),
            path,
        ),
    )
