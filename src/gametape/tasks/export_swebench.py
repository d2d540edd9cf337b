"""Export tasks as SWE-bench instances: one JSON object a line, with patches against the starting tree.

The file is for the grader: it names the held-out tests, and its patches contain them and the solution.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.record.atomic import write_atomically
from gametape.record.errors import printable_path
from gametape.tasks.export import ExportableTask
from gametape.verify.git_patch import make_git_patch
from gametape.verify.jobs import pytest_options


def export_swebench(tasks: Iterable[ExportableTask], out: Path) -> Path:
    """Write a new file with one line for each task, atomically."""
    if out.exists() or out.is_symlink():
        raise BadInput(f"{printable_path(out)}: is there already; give the name of a new file")
    lines = [json.dumps(swebench_instance(task), allow_nan=False) for task in tasks]
    write_atomically(out, "".join(f"{line}\n" for line in lines).encode())
    return out


def swebench_instance(exported: ExportableTask) -> dict[str, Any]:
    """One task as an instance.

    Datasets of this format disagree on the direction of `patch`, so `gold_patch` and `break_patch` name both. There is
    no base commit: `gametape task checkout` writes the starting tree. `test_patch` turns the agent's tests into the
    pristine ones.
    """
    loaded_task, task = exported.loaded_task, exported.loaded_task.task
    tests = task.tests
    keep = [*tests.pass_to_pass, *tests.held_out_passing]
    gold = make_git_patch(loaded_task.start, exported.reference)
    return {
        "instance_id": exported.name,
        "repo": task.origin.name if task.origin else task.name,
        "version": task.origin.version if task.origin else "",
        "base_commit": "",
        "problem_statement": exported.statement,
        "hints_text": "",
        "FAIL_TO_PASS": json.dumps([test for test in [*tests.fail_to_pass, *tests.held_out] if test not in set(keep)]),
        "PASS_TO_PASS": json.dumps(keep),
        "patch": gold,
        "gold_patch": gold,
        "break_patch": make_git_patch(exported.reference, loaded_task.start),
        "test_patch": make_git_patch(loaded_task.start.under(task.test_paths), loaded_task.suite),
        "environment": {
            "image": exported.image,
            "dependencies": task.dependencies,
            "import_roots": task.import_roots,
            "pytest_options": [
                option.replace("/workspace/", "").replace("/workspace", ".")
                for option in pytest_options(loaded_task.start, None)
            ],
        },
    }
