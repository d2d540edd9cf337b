"""Test ids as pytest gives them, for small suites written here."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from gametape.tasks.mining.held_out.removable_tests import TestSuite, read_test_suite
from tests.forked import fork_server


def collected(files: Mapping[str, bytes]) -> list[str]:
    """What pytest finds in these files."""
    with tempfile.TemporaryDirectory() as directory:
        for path, content in files.items():
            target = Path(directory, path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        options = ["--collect-only", "-q", "-p", "no:cacheprovider", "--rootdir", directory, "-c", os.devnull]
        run = fork_server("pytest:main").run(
            ["pytest", *options, directory],
            directory,
            {
                **os.environ,
                "PYTHONPATH": directory,
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            },
        )
        assert run.returncode in (0, 5), run.stdout
        return [line for line in run.stdout.splitlines() if "::" in line]


def suite_of(files: Mapping[str, str]) -> TestSuite:
    sources = {path: text.encode() for path, text in files.items()}
    return read_test_suite(sources, collected(sources))
