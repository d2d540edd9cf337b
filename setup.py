"""What pyproject.toml cannot say: the wheel carries `configs/` and `examples/` as `gametape/shipped/`."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

SHIPPED = ("configs", "examples")


class BuildWithExamples(build_py):
    def run(self) -> None:
        super().run()
        if not self.editable_mode:
            target = Path(self.build_lib, "gametape", "shipped")
            shutil.rmtree(target, ignore_errors=True)
            for name in SHIPPED:
                shutil.copytree(name, target / name, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))


setup(cmdclass={"build_py": BuildWithExamples})
