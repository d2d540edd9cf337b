"""The text of the tests, compiled before a conftest may import product code and kept off the disk if need be.

pytest compiles a test file when it imports it. By then a conftest may have loaded code that reads or rewrites the file,
or plants byte code beside it. So the files that a process is given are compiled first, from memory.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from _pytest.assertion import rewrite

from .workspace_files import in_workspace


class _HeldFile(type(Path())):  # type: ignore[misc]
    """A path whose content is not on disk."""

    content = b""

    def read_bytes(self) -> bytes:
        return self.content


def _make_holder() -> Callable[[Mapping[str, str]], Callable[[Any], None]]:
    """Make pytest take compiled tests from here, and no byte code from disk."""
    compiled: dict[str, Any] = {}
    compile_file = rewrite._rewrite_test

    def compile_or_take(path: Path, *more: Any) -> Any:
        return compiled.pop(str(path), None) or compile_file(path, *more)

    def no_byte_code(*_: Any) -> None:
        return None

    def hold(texts: Mapping[str, str]) -> Callable[[Any], None]:
        waiting = dict(texts)

        def compile_all(config: Any) -> None:
            while waiting:
                name, text = waiting.popitem()
                file = _HeldFile(in_workspace(name))
                file.content = text.encode("utf-8", "surrogateescape")
                try:
                    compiled[str(file)] = compile_file(file, config)
                except (SyntaxError, ValueError, RecursionError, MemoryError):
                    continue  # pytest reports it when it imports the file
                finally:
                    file.content = b""

        return compile_all

    rewrite._rewrite_test, rewrite._read_pyc = compile_or_take, no_byte_code  # type: ignore[assignment]
    return hold


hold_tests = _make_holder()
"""From texts by path to a function that compiles them all with a pytest config, and lets go of the texts."""
