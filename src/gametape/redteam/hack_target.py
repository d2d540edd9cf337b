"""A checked-out task that a hack is planted on, with what hacks need: stub bodies, injection of code that runs at
import, expected calls of visible tests, and leaked artifacts."""

import ast
import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gametape.record.loaded_task import LoadedTask
from gametape.record.source_tree import is_under
from gametape.syntax.definitions import FunctionNode, is_docstring
from gametape.syntax.expected_calls import ExpectedCall, extract_expected_calls
from gametape.syntax.names import bound_names, imported_modules, unbound_names
from gametape.syntax.pytest_ids import split_test_id
from gametape.syntax.source import parse
from gametape.verify import missing_functions
from gametape.verify.missing_functions import MissingFunction
from gametape.verify.stub_bodies import StubBody, fill_task, is_invalid_body


class HackNotApplicable(Exception):
    """The task lacks what this hack needs; the message says what."""


@dataclass(frozen=True)
class HackTarget:
    """A private checkout of a task's starting tree, free to change."""

    loaded_task: LoadedTask
    root: Path

    @classmethod
    def check_out(cls, loaded_task: LoadedTask, directory: Path) -> "HackTarget":
        loaded_task.start.write_to(directory)
        return cls(loaded_task, directory)

    # What the task asks for

    @functools.cached_property
    def missing(self) -> list[MissingFunction]:
        """The functions that have to be written."""
        functions = missing_functions.find_missing_functions(self.loaded_task)
        if not functions:
            raise HackNotApplicable("no function is missing or stubbed")
        return functions

    @functools.cached_property
    def missing_files(self) -> list[str]:
        """The files they belong in."""
        return list(dict.fromkeys(item.path for item in self.missing))

    @functools.cached_property
    def test_files(self) -> list[str]:
        """The visible tests, with at least one file."""
        named = dict.fromkeys(split_test_id(test)[0] for test in self.loaded_task.task.tests.visible)
        paths = [path for path in named if path in self.loaded_task.start]
        if not paths:
            raise HackNotApplicable("no visible test")
        return paths

    @functools.cached_property
    def imported_files(self) -> list[str]:
        """The source files that the visible tests import by name, once what is missing is there."""
        tree = self.loaded_task.reference or self.loaded_task.start
        paths: list[str] = []
        for path in self.test_files:
            if module := missing_functions.parse_file(self.loaded_task.start, path):
                for name in imported_modules(module):
                    paths += missing_functions.module_files(self.loaded_task, tree, name)
        return list(dict.fromkeys(paths))

    @functools.cached_property
    def main_file(self) -> str:
        """A source file that the tests import, and if possible one with something missing."""
        both = [path for path in self.imported_files if path in self.missing_files]
        return (both or self.imported_files or self.missing_files)[0]

    @functools.cached_property
    def expected_calls(self) -> list[ExpectedCall]:
        """Literal calls of missing functions in visible tests, with what is expected of them."""
        wanted = {item.name for item in self.missing}
        calls = [
            pair
            for path in self.test_files
            for pair in extract_expected_calls(path, self.loaded_task.start.files[path])
            if pair.function in wanted
        ]
        if not calls:
            raise HackNotApplicable("no visible test compares a call of a missing function with a literal")
        return calls

    # Changing the workspace

    def read(self, path: str) -> str:
        file = self.root / path
        return file.read_text() if file.exists() else ""

    def write(self, path: str, content: str | bytes, mode: int = 0o644) -> None:
        file = self.root / path
        if not file.resolve().is_relative_to(self.root.resolve()):
            raise ValueError(f"{path} lies outside the workspace that is free to change")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        file.chmod(mode)

    def add_code(self, path: str, code: str) -> None:
        """Code in a file of its own, or at the end of the one that is there: what tests need of it stays."""
        before = self.read(path)
        self.write(path, f"{before.rstrip()}\n\n\n{code}" if before.strip() else code)

    def fill_stubs(self, body: StubBody = "return None") -> None:
        """Give every missing function this body, and make everything importable that the tests import."""
        if body != "return None" and all(is_invalid_body(item, body) for item in self.missing):
            raise HackNotApplicable("only constructors are missing, and they return nothing")
        for path, text in fill_task(self.loaded_task, self.missing, body, self.read).items():
            self.write(path, text)

    def inject(self, code: str, path: str | None = None, at: str = "top") -> None:
        """Put code where importing the tests runs it: after the docstring and `__future__`, or at the end.

        That is the main file and, where hollow bodies in other files use what the code binds, those too.
        `ROOT_OF_WORKSPACE` in the code becomes an expression for the workspace's directory at run time.
        """
        for file in [path] if path else [self.main_file, *self._files_using(code)]:
            self._inject(code.replace("ROOT_OF_WORKSPACE", workspace_root_expression(file)).strip("\n"), file, at)

    def _files_using(self, code: str) -> list[str]:
        bound = bound_names(parse(code.replace("ROOT_OF_WORKSPACE", "root")))
        others = [path for path in self.missing_files if path != self.main_file]
        return [path for path in others if bound & unbound_names(parse(self.read(path)))]

    def _inject(self, code: str, path: str, at: str) -> None:
        lines = self.read(path).splitlines()
        if at == "end":
            self.write(path, "\n".join([*lines, "", "", code, ""]))
            return
        head = 0
        for node in parse("\n".join(lines)).body:
            if not (is_docstring(node) or (isinstance(node, ast.ImportFrom) and node.module == "__future__")):
                break
            head = node.end_lineno or head
        self.write(path, "\n".join([*lines[:head], code, *lines[head:], ""]))

    def change_tests(self, change: Callable[[ast.Module], ast.AST], added: str = "") -> None:
        """Rewrite every visible test file through its syntax, if there is anything to change in one of them.

        Files stay as they are where no function changes: a condition around imports is no test. `added` goes to the
        end of the others.
        """
        changed = {}
        for path in self.test_files:
            text = self.read(path)
            module = ast.fix_missing_locations(change(parse(text)))
            if _functions(module) != _functions(parse(text)):
                changed[path] = ast.unparse(module) + "\n" + added
        if not changed:
            raise HackNotApplicable("there is nothing in the visible tests to change like this")
        for path, content in changed.items():
            self.write(path, content)

    def paths_beside_code(self, name: str) -> list[str]:
        """Paths for a new file next to every file that code is injected into."""
        files = [self.main_file, *self.missing_files]
        return list(dict.fromkeys((Path(path).parent / name).as_posix() for path in files))

    def path_beside_main(self, name: str) -> str:
        """A path for a new file next to the main one."""
        return (Path(self.main_file).parent / name).as_posix()

    @property
    def import_root(self) -> str:
        """The directory that `main_file` is imported from, as a prefix for paths."""
        roots = [root for root in self.loaded_task.task.import_roots if is_under(self.main_file, [root])]
        root = max(roots, key=len, default=".").strip("/")
        return "" if root in (".", "") else root + "/"

    @property
    def package(self) -> str:
        """The top-level name that the tests import."""
        return self.main_file.removeprefix(self.import_root).split("/")[0].removesuffix(".py")

    def module_name(self, path: str) -> str:
        """How a source file is imported."""
        return path.removeprefix(self.import_root).removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    # Leaks

    @property
    def reference_texts(self) -> dict[str, str]:
        """The reference's text of every file with something missing, by path: what an environment may leak."""
        if self.loaded_task.reference is None:
            raise HackNotApplicable("no reference that an environment could have leaked")
        return {path: self.loaded_task.reference.text(path) for path in self.missing_files}

    def write_leaks(self, leftovers: dict[str, bytes]) -> None:
        """Write leaked files outside the sources: inside they would be the agent's work."""
        for path, content in leftovers.items():
            if is_under(path, self.loaded_task.task.source_paths) and not path.endswith(".pyc"):
                raise HackNotApplicable(f"{path} would be part of the sources")
            self.write(path, content)


def workspace_root_expression(path: str) -> str:
    """The workspace's directory, as seen from one of its files at run time."""
    return f"__import__('pathlib').Path(__file__).resolve().parents[{path.count('/')}]"


def plant_at_import(code: str, body: StubBody = "return None", at: str = "top") -> Callable[[HackTarget], None]:
    """A plant for code that runs when the tests import the product, beside bodies that do no work."""

    def plant(target: HackTarget) -> None:
        target.fill_stubs(body)
        target.inject(code, at=at)

    return plant


def plant_files(files: dict[str, str], body: StubBody = "return None") -> Callable[[HackTarget], None]:
    """A plant for files of the workspace beside bodies that do no work."""

    def plant(target: HackTarget) -> None:
        target.fill_stubs(body)
        for path, content in files.items():
            if path.endswith("conftest.py"):
                target.add_code(path, content)
            else:
                target.write(path, content)

    return plant


def plant_all(*plants: Callable[[HackTarget], None]) -> Callable[[HackTarget], None]:
    """Several plants on one workspace."""

    def plant(target: HackTarget) -> None:
        for part in plants:
            part(target)

    return plant


def _functions(module: ast.AST) -> list[str]:
    return [ast.unparse(node) for node in ast.walk(module) if isinstance(node, FunctionNode)]
