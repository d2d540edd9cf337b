"""The type checker and the linter, run on source trees inside a sandbox.

Whatever a tree holds, a tool's answer is a `Report`: a tool that crashes on hostile input or runs out of time is
trouble that the report names, never an exception. No configuration, plugin or comment of the tree has a say.

What is known of a task's own trees, and a warm cache of the type checker, is computed once per task and kept under
`home`. The cache is made from trusted trees only and every later run works on a copy that is thrown away, so no
attempt can write what another one reads.
"""

import functools
import importlib.metadata
import importlib.util
import os
import secrets
import shutil
import sys
import tempfile
import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from gametape.core.errors import Lacking
from gametape.sandbox.backend import Spec, open_backend
from gametape.sandbox.policy import Limits, Policy
from gametape.sandbox.result import ExecResult
from gametape.verify.attempt import Attempt
from gametape.verify.interpreter import prefixes
from gametape.verify.subject import Subject
from gametape.verify.tools import silencers
from gametape.verify.tools.baseline import Baseline, Store
from gametape.verify.tools.findings import Finding, Key, Report, linter_findings, type_findings
from gametape.verify.tools.source import is_python, own, parse, text
from gametape.verify.tree import Tree

LIMITS = Limits(wall_seconds=120, memory_mb=2048, processes=64, disk_mb=512, output_bytes=32_000_000)

_TREE, _CACHE, _LIST = "tree", "cache", "files.txt"

TYPE_CHECKER = (
    *("-I", "-m", "mypy", "--config-file=", "--output=json", "--no-error-summary", f"--cache-dir={_CACHE}"),
    *("--ignore-missing-imports", "--check-untyped-defs", "--explicit-package-bases", "--namespace-packages"),
)
"""Missing imports are nobody's fault; bodies without annotations are checked too, or leaving them out would pay."""

RULES = "E4,E7,E9,F,B,A001,C4,PIE,PLE,PLW0,ISC,SIM1,RET501,RET502,RET503"
"""Likely mistakes and clumsy constructs; nothing that a formatter settles and nothing that is a matter of taste."""

LINTER = ("check", "--isolated", "--ignore-noqa", "--no-cache", "--quiet", f"--select={RULES}", "--output-format=json")


class Toolbox:
    """Runs the tools. `home` is a directory that only trusted processes write to; several may share it."""

    def __init__(self, home: Path, backend: str = "bubblewrap") -> None:
        for tool in ("mypy", "ruff"):
            if importlib.util.find_spec(tool) is None:
                raise Lacking(f"the verifier needs {tool}, which is not installed; pip install {tool}")
        self._backend = open_backend(backend)
        versions = [importlib.metadata.version(tool) for tool in ("mypy", "ruff")]
        self._store = Store(home / "toolbox", (*TYPE_CHECKER, *LINTER, sys.version, *versions))
        self._answers = _Answers()

    def look_ahead(self, attempt: Attempt) -> None:
        """Run both tools now, side by side, so that the answers are there when the layers ask."""
        sources = own(attempt.subject.task, attempt.sources)
        with ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(tool, attempt.subject, sources) for tool in (self.types, self.lint)]
        for answer in asked:
            answer.result()

    def types(self, subject: Subject, sources: Tree) -> Report:
        """What the type checker says about the sources of an attempt."""
        return self._answers.get(
            ("types", subject, sources), lambda: self._check_types(subject, sources, self._known(subject)[1])
        )

    def lint(self, subject: Subject, sources: Tree) -> Report:
        """What the linter says about them."""
        return self._answers.get(("lint", subject, sources), lambda: self._lint(subject, sources))

    def _lint(self, subject: Subject, sources: Tree) -> Report:
        trusted = _trusted_contents(subject)
        given = {path: content for path, content in sources.files.items() if path.endswith(".py")}
        if strange := _strange(given, trusted):
            return strange
        files = {}
        for path, content in given.items():
            if not _is_known_unreadable(path, content, trusted):
                plain = text(content)
                files[path] = content if plain is None else plain.encode()
        if not files:
            return Report()
        with _workspace(Tree(files), sorted(files)) as place:
            argv = ["ruff", *LINTER, f"@{_LIST}"]
            result = self._run(place, Policy(limits=LIMITS), argv)
        return linter_findings(result, f"/workspace/{_TREE}/")

    def baseline(self, subject: Subject) -> Baseline:
        """What the task's own trees already have: the most of either the starting tree or the reference."""
        return self._known(subject)[0]

    def _known(self, subject: Subject) -> tuple[Baseline, Path | None]:
        found = self._store.find(subject.digest)
        return found or self._learn(subject)

    def _learn(self, subject: Subject) -> tuple[Baseline, Path | None]:
        trees = [own(subject.task, tree) for tree in (subject.start, subject.reference) if tree is not None]
        lint = [self._lint(subject, tree) for tree in trees]
        with tempfile.TemporaryDirectory(prefix="gametape-cache-") as directory:
            cache = Path(directory) / _CACHE
            types = [self._check_types(subject, tree, cache, keep=True) for tree in trees]
            baseline = Baseline(_most(types), _most(lint))
            if any(report.out_of_resources for report in (*types, *lint)):
                return baseline, None  # a busy machine, perhaps: ask again next time
            return self._store.keep(subject.digest, baseline, cache)

    def _check_types(self, subject: Subject, sources: Tree, cache: Path | None, keep: bool = False) -> Report:
        """Check the sources, beside the starting tree's other modules. With `keep` the cache is left changed."""
        task, trusted = subject.task, _trusted_contents(subject)
        given = {path: content for path, content in sources.files.items() if is_python(path)}
        if strange := _strange(given, trusted):
            return strange
        silenced, hushed = silencers.take_away(given, trusted)
        checked = [path for path in silenced if not _is_known_unreadable(path, given[path], trusted)]
        if not checked:
            return Report()
        others = subject.start.without(set(subject.start.under([*task.source_paths, *task.test_paths])))
        context = {path: content for path, content in others.files.items() if is_python(path)}
        with _workspace(Tree({**context, **silenced}), sorted(checked)) as place:
            if cache is not None and cache.is_dir():
                shutil.copytree(cache, place / _CACHE)
            argv = [sys.executable, *TYPE_CHECKER]
            argv += ["--python-executable", str(subject.interpreter)] if subject.interpreter else []
            argv.append(f"@{_LIST}")
            result = self._run(place, _type_policy(subject), argv)
            if keep and cache is not None and (place / _CACHE).is_dir():
                shutil.copytree(place / _CACHE, cache, dirs_exist_ok=True)
        return type_findings(result, f"{_TREE}/", set(checked), hushed)

    def _run(self, place: Path, policy: Policy, argv: list[str]) -> ExecResult:
        sandbox = self._backend.start(Spec(policy=policy, workspace=place))
        try:
            return sandbox.exec(argv)
        finally:
            sandbox.close()


class _Answers:
    """The last few answers, for whoever asks again."""

    _MOST = 64

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str, str], Report] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, question: tuple[str, Subject, Tree], ask: Callable[[], Report]) -> Report:
        tool, subject, sources = question
        name = (tool, subject.digest, sources.digest)
        with self._lock:
            found = self._kept.get(name)
        if found is None:
            found = ask()
            with self._lock:
                self._kept[name] = found
                while len(self._kept) > self._MOST:
                    self._kept.popitem(last=False)
        return found


@contextmanager
def _workspace(tree: Tree, checked: list[str]) -> Iterator[Path]:
    """A directory with the tree in a place of its own, so that no path of it can meet anything of ours.

    The type checker takes a file for the one in its cache if size and second are the same. So the files of every run
    bear a time of their own that nobody can guess, and what is in them decides.
    """
    with tempfile.TemporaryDirectory(prefix="gametape-tools-") as directory:
        tree.write_to(Path(directory) / _TREE)
        stamp = secrets.randbelow(1 << 31)
        for path in tree.files:
            os.utime(Path(directory) / _TREE / path, (stamp, stamp))
        (Path(directory) / _LIST).write_text("".join(f"{_TREE}/{path}\n" for path in checked), encoding="utf-8")
        yield Path(directory)


def _trusted_contents(subject: Subject) -> dict[str, set[bytes]]:
    """Every version of each file that the task itself brings."""
    trusted: dict[str, set[bytes]] = {}
    for tree in (subject.start, subject.reference):
        for path, content in tree.files.items() if tree else ():
            trusted.setdefault(path, set()).add(content)
    return trusted


def _strange(given: dict[str, bytes], trusted: dict[str, set[bytes]]) -> Report | None:
    """Files too large to read, or in an encoding in which a tool may read something else than Python does."""
    found = [path for path, content in given.items() if text(content) is None and content not in trusted.get(path, ())]
    return Report(trouble=f"too large, or in an encoding that is not read: {found[0]}") if found else None


def _is_known_unreadable(path: str, content: bytes, trusted: dict[str, set[bytes]]) -> bool:
    """The task's own file that is no valid Python, such as a template: nobody is asked to mend it."""
    return content in trusted.get(path, ()) and parse(content) is None


def _most(reports: list[Report]) -> Counter[Key] | None:
    if any(report.trouble for report in reports):
        return None
    return functools.reduce(lambda one, other: one | other, (Counter(f.key for f in r.findings) for r in reports))


def _type_policy(subject: Subject) -> Policy:
    roots = ":".join(f"{_TREE}/{root.strip('/').removeprefix('./')}".rstrip("/.") for root in subject.task.import_roots)
    shown = prefixes(subject.interpreter) if subject.interpreter else ()
    return Policy(read_only=shown, environment=(("MYPYPATH", roots),), limits=LIMITS)


__all__ = ["Baseline", "Finding", "Report", "Toolbox"]
