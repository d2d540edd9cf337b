"""The type checker and the linter, run on source trees in a sandbox.

The answer is a `ToolReport` for any tree: if a tool crashes on hostile input or runs out of time, the report names the
error, and no exception is raised. Configuration, plugins and comments of the tree have no effect.

The findings in a task's own trees and a warm cache of the type checker are computed once per task and kept under
`home`. The cache is made from trusted trees only, and every later run works on a copy that is thrown away, so that no
submission can write what another one reads.
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

from gametape.core.errors import MissingDependency
from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import SourceTree
from gametape.sandbox.backend import SandboxSpec, open_backend
from gametape.sandbox.policy import SandboxLimits, SandboxPolicy
from gametape.sandbox.result import ExecResult
from gametape.verify.interpreter import interpreter_prefixes
from gametape.verify.static_analysis import suppressions
from gametape.verify.static_analysis.baseline import BaselineStore, ToolBaseline
from gametape.verify.static_analysis.findings import (
    FindingKey,
    ToolReport,
    parse_linter_output,
    parse_type_checker_output,
)
from gametape.verify.static_analysis.python_source import (
    decode_source,
    is_python,
    own_sources,
    parse_source,
)
from gametape.verify.submission import Submission

LIMITS = SandboxLimits(wall_seconds=120, memory_mb=2048, processes=64, disk_mb=512, output_bytes=32_000_000)

_TREE, _CACHE, _LIST = "tree", "cache", "files.txt"

TYPE_CHECKER = (
    *("-I", "-m", "mypy", "--config-file=", "--output=json", "--no-error-summary", f"--cache-dir={_CACHE}"),
    *("--ignore-missing-imports", "--check-untyped-defs", "--explicit-package-bases", "--namespace-packages"),
)
"""Missing imports are no error. Bodies without annotations are checked too, or leaving annotations out would pay."""

RULES = "E4,E7,E9,F,B,A001,C4,PIE,PLE,PLW0,ISC,SIM1,RET501,RET502,RET503"
"""Likely mistakes and clumsy constructs; no formatting and no matters of taste."""

LINTER = ("check", "--isolated", "--ignore-noqa", "--no-cache", "--quiet", f"--select={RULES}", "--output-format=json")


class StaticAnalyzer:
    """Runs the tools. `home` is a directory that only trusted processes write to; several may share it."""

    def __init__(self, home: Path, backend: str = "bubblewrap") -> None:
        for tool in ("mypy", "ruff"):
            if importlib.util.find_spec(tool) is None:
                raise MissingDependency(f"the verifier needs {tool}, which is not installed; pip install {tool}")
        self._backend = open_backend(backend)
        versions = [importlib.metadata.version(tool) for tool in ("mypy", "ruff")]
        self._store = BaselineStore(home / "toolbox", (*TYPE_CHECKER, *LINTER, sys.version, *versions))
        self._reports = _ReportCache()

    def prefetch(self, submission: Submission) -> None:
        """Run both tools now, in parallel, so that the reports are cached when the layers ask for them."""
        sources = own_sources(submission.loaded_task.task, submission.sources)
        with ThreadPoolExecutor(2) as pool:
            running = [
                pool.submit(tool, submission.loaded_task, sources) for tool in (self.type_report, self.lint_report)
            ]
        for report in running:
            report.result()

    def type_report(self, loaded_task: LoadedTask, sources: SourceTree) -> ToolReport:
        """The type checker's findings in the sources of a submission."""
        return self._reports.get(
            ("types", loaded_task, sources),
            lambda: self._check_types(loaded_task, sources, self._known(loaded_task)[1]),
        )

    def lint_report(self, loaded_task: LoadedTask, sources: SourceTree) -> ToolReport:
        """The linter's findings in the sources of a submission."""
        return self._reports.get(("lint", loaded_task, sources), lambda: self._lint(loaded_task, sources))

    def _lint(self, loaded_task: LoadedTask, sources: SourceTree) -> ToolReport:
        trusted = _trusted_contents(loaded_task)
        given = {path: content for path, content in sources.files.items() if path.endswith(".py")}
        if unreadable := _unreadable_report(given, trusted):
            return unreadable
        files = {}
        for path, content in given.items():
            if not _is_known_unreadable(path, content, trusted):
                text = decode_source(content)
                files[path] = content if text is None else text.encode()
        if not files:
            return ToolReport()
        with _workspace(SourceTree(files), sorted(files)) as directory:
            argv = ["ruff", *LINTER, f"@{_LIST}"]
            result = self._run(directory, SandboxPolicy(limits=LIMITS), argv)
        return parse_linter_output(result, f"/workspace/{_TREE}/")

    def baseline(self, loaded_task: LoadedTask) -> ToolBaseline:
        """The findings in the task's own trees: of each the maximum over the starting tree and the reference."""
        return self._known(loaded_task)[0]

    def _known(self, loaded_task: LoadedTask) -> tuple[ToolBaseline, Path | None]:
        return self._store.find(loaded_task.digest) or self._compute_baseline(loaded_task)

    def _compute_baseline(self, loaded_task: LoadedTask) -> tuple[ToolBaseline, Path | None]:
        trees = [
            own_sources(loaded_task.task, tree)
            for tree in (loaded_task.start, loaded_task.reference)
            if tree is not None
        ]
        lint = [self._lint(loaded_task, tree) for tree in trees]
        with tempfile.TemporaryDirectory(prefix="gametape-cache-") as directory:
            cache = Path(directory) / _CACHE
            types = [self._check_types(loaded_task, tree, cache, keep=True) for tree in trees]
            baseline = ToolBaseline(_most_findings(types), _most_findings(lint))
            if any(report.out_of_resources for report in (*types, *lint)):
                return baseline, None  # perhaps the machine is busy: compute it again next time
            return self._store.keep(loaded_task.digest, baseline, cache)

    def _check_types(
        self, loaded_task: LoadedTask, sources: SourceTree, cache: Path | None, keep: bool = False
    ) -> ToolReport:
        """Check the sources together with the starting tree's other modules. With `keep` the cache is updated."""
        task, trusted = loaded_task.task, _trusted_contents(loaded_task)
        given = {path: content for path, content in sources.files.items() if is_python(path)}
        if unreadable := _unreadable_report(given, trusted):
            return unreadable
        files, suppressed = suppressions.remove_suppressions(given, trusted)
        checked = [path for path in files if not _is_known_unreadable(path, given[path], trusted)]
        if not checked:
            return ToolReport()
        others = loaded_task.start.without(set(loaded_task.start.under([*task.source_paths, *task.test_paths])))
        context = {path: content for path, content in others.files.items() if is_python(path)}
        with _workspace(SourceTree({**context, **files}), sorted(checked)) as directory:
            if cache is not None and cache.is_dir():
                shutil.copytree(cache, directory / _CACHE)
            argv = [sys.executable, *TYPE_CHECKER]
            argv += ["--python-executable", str(loaded_task.interpreter)] if loaded_task.interpreter else []
            argv.append(f"@{_LIST}")
            result = self._run(directory, _type_policy(loaded_task), argv)
            if keep and cache is not None and (directory / _CACHE).is_dir():
                shutil.copytree(directory / _CACHE, cache, dirs_exist_ok=True)
        return parse_type_checker_output(result, f"{_TREE}/", set(checked), suppressed)

    def _run(self, directory: Path, policy: SandboxPolicy, argv: list[str]) -> ExecResult:
        sandbox = self._backend.start(SandboxSpec(policy=policy, workspace=directory))
        try:
            return sandbox.exec(argv)
        finally:
            sandbox.close()


class _ReportCache:
    """The last few reports, by tool, task and sources."""

    _MOST = 64

    def __init__(self) -> None:
        self._by_key: OrderedDict[tuple[str, str, str], ToolReport] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, question: tuple[str, LoadedTask, SourceTree], compute: Callable[[], ToolReport]) -> ToolReport:
        tool, loaded_task, sources = question
        key = (tool, loaded_task.digest, sources.digest)
        with self._lock:
            report = self._by_key.get(key)
        if report is None:
            report = compute()
            with self._lock:
                self._by_key[key] = report
                while len(self._by_key) > self._MOST:
                    self._by_key.popitem(last=False)
        return report


@contextmanager
def _workspace(tree: SourceTree, checked: list[str]) -> Iterator[Path]:
    """A directory with the tree in a subdirectory, so that no path of it collides with our own files.

    The type checker takes a file for the cached one if size and time of change in seconds are equal. So the files of
    every run get a random time, and their content decides.
    """
    with tempfile.TemporaryDirectory(prefix="gametape-tools-") as directory:
        tree.write_to(Path(directory) / _TREE)
        stamp = secrets.randbelow(1 << 31)
        for path in tree.files:
            os.utime(Path(directory) / _TREE / path, (stamp, stamp))
        (Path(directory) / _LIST).write_text("".join(f"{_TREE}/{path}\n" for path in checked), encoding="utf-8")
        yield Path(directory)


def _trusted_contents(loaded_task: LoadedTask) -> dict[str, set[bytes]]:
    """The contents of each file in the task's own trees."""
    trusted: dict[str, set[bytes]] = {}
    for tree in (loaded_task.start, loaded_task.reference):
        for path, content in tree.files.items() if tree else ():
            trusted.setdefault(path, set()).add(content)
    return trusted


def _unreadable_report(given: dict[str, bytes], trusted: dict[str, set[bytes]]) -> ToolReport | None:
    """An error for files too large to read, or in an encoding that a tool may decode differently from Python."""
    unreadable = [
        path
        for path, content in given.items()
        if decode_source(content) is None and content not in trusted.get(path, ())
    ]
    return ToolReport(error=f"too large, or in an encoding that is not read: {unreadable[0]}") if unreadable else None


def _is_known_unreadable(path: str, content: bytes, trusted: dict[str, set[bytes]]) -> bool:
    """Whether it is a file of the task's own trees that is no valid Python, such as a template."""
    return content in trusted.get(path, ()) and parse_source(content) is None


def _most_findings(reports: list[ToolReport]) -> Counter[FindingKey] | None:
    if any(report.error for report in reports):
        return None
    return functools.reduce(lambda left, right: left | right, (Counter(f.key for f in r.findings) for r in reports))


def _type_policy(loaded_task: LoadedTask) -> SandboxPolicy:
    roots = ":".join(
        f"{_TREE}/{root.strip('/').removeprefix('./')}".rstrip("/.") for root in loaded_task.task.import_roots
    )
    read_only = interpreter_prefixes(loaded_task.interpreter) if loaded_task.interpreter else ()
    return SandboxPolicy(read_only=read_only, environment=(("MYPYPATH", roots),), limits=LIMITS)
