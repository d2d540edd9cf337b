"""Constraints: the paths, commands, branches and output that an agent is forbidden. The tool router checks them.

For tools that take a path the rules are exact. A shell command is checked by its text, which is a best effort, so the
paths it changed are checked afterwards (`path_breaches`), and the rollout undoes the turn.
"""

import functools
import posixpath
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from gametape.agent.shell_commands import split_commands, written_paths
from gametape.core.base_model import StrictModel
from gametape.core.errors import BadInput
from gametape.core.validation import problems_from, raise_faults
from gametape.sandbox.policy import WORKSPACE

Glob = Annotated[str, Field(min_length=1, max_length=500)]
Pattern = Annotated[str, Field(min_length=1, max_length=500)]

_WRITERS = frozenset({"write", "edit"})
_COMMITTING = frozenset({"commit", "merge", "push", "rebase", "reset", "cherry-pick", "revert", "am", "pull"})
_BRANCHING = frozenset({"branch", "update-ref", "switch", "checkout"})
_FORCED = frozenset({"-B", "-C", "--force-create"})
_UNKNOWN = "a branch that is not known"
_HEADS = ".git/refs/heads/"
_LONGEST_EVIDENCE = 200
_MOST_SCANNED = 1_000_000


@dataclass(frozen=True)
class ConstraintBreach:
    """One thing that a rule forbids, and the evidence."""

    kind: Literal["path", "command", "branch", "output"]
    rule: str
    evidence: str

    def __str__(self) -> str:
        return f"forbidden by the {self.kind} rule {self.rule!r}: {self.evidence}"


class Constraints(StrictModel):
    """Globs are relative to the workspace; `*` stays within a directory, `**` does not, and a directory's glob holds
    for all below it. Patterns are regular expressions, found anywhere."""

    unwritable: list[Glob] = Field(default_factory=list)
    unreadable: list[Glob] = Field(default_factory=list)
    """Neither read nor written."""
    commands: list[Pattern] = Field(default_factory=list)
    """Over each simple command of a command line, its words joined by one blank."""
    branches: list[Glob] = Field(default_factory=list)
    """Branches that are never committed to, merged into, pushed to or moved."""
    output: list[Pattern] = Field(default_factory=list)
    """Patterns that neither a message nor written content may hold."""

    @model_validator(mode="after")
    def _patterns_compile(self) -> Self:
        for name in ("commands", "output"):
            for index, pattern in enumerate(getattr(self, name)):
                try:
                    re.compile(pattern)
                except re.error as error:
                    raise_faults([((name, index), f"a regular expression ({error})")])
        return self

    def describe(self) -> str:
        """The constraints in words, for the model; empty where nothing is forbidden."""
        sentences = (
            ("do not write or change", self.unwritable),
            ("do not read or write", self.unreadable),
            ("do not run commands that match", self.commands),
            ("do not commit to, merge into, push to or move the branches", self.branches),
            ("do not write or say what matches", self.output),
        )
        return "\n".join(f"- {words}: {', '.join(rules)}" for words, rules in sentences if rules)

    def call_breach(
        self, tool: str, arguments: Mapping[str, Any], branch: str | None = None
    ) -> ConstraintBreach | None:
        """The breach that a call would be, before it is run.

        `branch` is the workspace's branch, empty if it is on none. An unknown branch, None, counts as forbidden.
        """
        if self == Constraints():
            return None
        if tool == "shell":
            return self._command_breach(str(arguments.get("command", "")), branch)
        path = arguments.get("path")
        if isinstance(path, str) and (breach := self._path_breach(path, writes=tool in _WRITERS)):
            return breach
        if tool == "check":
            paths = arguments.get("paths")
            breaches = (self._path_breach(str(path), writes=False) for path in paths) if isinstance(paths, list) else ()
            return next(filter(None, breaches), None)
        texts = (value for value in arguments.values() if isinstance(value, str))
        return next(filter(None, map(self.text_breach, texts)), None)

    def text_breach(self, text: str) -> ConstraintBreach | None:
        """The breach in a message, or in content that is to be written."""
        for pattern in self.output:
            if match := _compiled(pattern).search(text[:_MOST_SCANNED]):
                start = match[0][:2] + "..." if len(match[0]) > 8 else "..."
                return ConstraintBreach("output", pattern, f"text that begins {start!r}")
        return None

    def path_breaches(self, changed: Iterable[str]) -> list[ConstraintBreach]:
        """The forbidden paths among those that a command changed, and the forbidden branches that it moved."""
        breaches = (self._path_breach(path, writes=True) or self._moved_branch(path) for path in changed)
        return [breach for breach in breaches if breach]

    def _path_breach(self, path: str, writes: bool) -> ConstraintBreach | None:
        relative = _relative(path)
        for rule in [*self.unreadable, *(self.unwritable if writes else [])]:
            if _matches(rule, relative):
                return ConstraintBreach(
                    "path", rule, f"{'writing' if writes else 'reading'} {relative[:_LONGEST_EVIDENCE]}"
                )
        return None

    def _moved_branch(self, path: str) -> ConstraintBreach | None:
        """A branch is a file that git writes at each commit, however the commit was made."""
        if not path.startswith(_HEADS):
            return None
        rule = next((rule for rule in self.branches if _matches(rule, path.removeprefix(_HEADS))), None)
        return ConstraintBreach("branch", rule, path) if rule else None

    def _command_breach(self, text: str, branch: str | None) -> ConstraintBreach | None:
        if breach := self.text_breach(text):
            return breach
        for words in split_commands(text):
            line = " ".join(words)
            for pattern in self.commands:
                if _compiled(pattern).search(line[:_MOST_SCANNED]):
                    return ConstraintBreach("command", pattern, line[:_LONGEST_EVIDENCE])
            if breach := self._branch_breach(words, branch) or self._words_breach(words):
                return breach
            branch = _switched_to(words) or branch
        return None

    def _words_breach(self, words: list[str]) -> ConstraintBreach | None:
        """The forbidden path among the words: any mention of an unreadable one, or writing an unwritable one."""
        mentioned = (self._path_breach(part, writes=False) for word in words for part in _path_like(word))
        written = (self._path_breach(path, writes=True) for path in written_paths(words))
        return next(filter(None, (*mentioned, *written)), None)

    def _branch_breach(self, words: list[str], branch: str | None) -> ConstraintBreach | None:
        action, rest = _git_action(words)
        if not self.branches or action is None:
            return None
        named = [_ref(word) for word in rest if not word.startswith("-")]
        here = [_UNKNOWN if branch is None else branch]
        if action == "push":
            touched = named[1:] or here  # the first is the remote
        elif action in _COMMITTING:
            touched = here
        else:
            moves = action in ("branch", "update-ref") or not _FORCED.isdisjoint(rest)
            touched = named if moves else []
        for rule in self.branches:
            for name in touched:
                if name == _UNKNOWN or _matches(rule, name):
                    return ConstraintBreach("branch", rule, f"git {action} on {name[:_LONGEST_EVIDENCE]}")
        return None


def read_constraints(file: Path) -> Constraints:
    """Read a TOML file with the fields of `Constraints`."""
    try:
        document = tomllib.loads(file.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"the constraints in {file} cannot be read: {error}") from error
    try:
        return Constraints.model_validate(document)
    except ValidationError as error:
        raise BadInput(f"the constraints in {file} are wrong: {problems_from(error, document)[0]}") from error


def _git_action(words: list[str]) -> tuple[str | None, list[str]]:
    """The git subcommand, behind git's own options, and its arguments."""
    if words[0].rpartition("/")[2] != "git":
        return None, []
    rest = words[1:]
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else rest[1:]
    action = rest[0] if rest else None
    return (action, rest[1:]) if action in _COMMITTING | _BRANCHING else (None, [])


def _switched_to(words: list[str]) -> str | None:
    """The branch that a command switches to; None if it does not."""
    action, rest = _git_action(words)
    named = [word for word in rest if not word.startswith("-")]
    return named[0] if action in ("switch", "checkout") and named and "--" not in rest else None


def _ref(word: str) -> str:
    """The branch that a git argument names: `+HEAD:refs/heads/main` is main."""
    return word.rpartition(":")[2].removeprefix("+").removeprefix("refs/heads/")


def _path_like(word: str) -> list[str]:
    """A word, and its parts after an option's `=` or a redirection."""
    return [part for part in {word, word.rpartition("=")[2], word.lstrip("<>&0123456789")} if part]


def _relative(path: str) -> str:
    whole = posixpath.normpath(posixpath.join(WORKSPACE, path.strip()))
    return posixpath.relpath(whole, WORKSPACE) if f"{whole}/".startswith(f"{WORKSPACE}/") else whole


def _matches(rule: str, path: str) -> bool:
    """The path itself, or any directory above it."""
    return _glob(rule).fullmatch(path) is not None


@functools.lru_cache(maxsize=512)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@functools.lru_cache(maxsize=512)
def _glob(rule: str) -> re.Pattern[str]:
    """`**/` is any directories or none; a name without a slash matches at any depth; what lies below belongs to it."""
    plain = rule.removeprefix(f"{WORKSPACE}/").removeprefix("./").rstrip("/")
    if "/" not in plain:
        plain = f"**/{plain}"
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", plain)
    spelled = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(spelled.get(part, re.escape(part)) for part in parts) + "(?:/.*)?", re.DOTALL)
