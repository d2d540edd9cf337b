"""Tasks as instances in the style of SWE-bench: one JSON object to a line, patches against the starting tree.

This is the grader's side of a task. Held-out tests are named in it, and its patches hold them and the solution.
"""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gametape.core.errors import BadInput
from gametape.record.atomic import write_atomically
from gametape.record.trouble import shown
from gametape.tasks.export import Exported
from gametape.verify.jobs import options
from gametape.verify.patch import unified


def export_swebench(tasks: Iterable[Exported], out: Path) -> Path:
    """Write a new file with one line for each task. It is there whole or not at all."""
    if out.exists() or out.is_symlink():
        raise BadInput(f"{shown(out)}: is there already; give the name of a new file")
    lines = [json.dumps(instance(task), allow_nan=False) for task in tasks]
    write_atomically(out, "".join(f"{line}\n" for line in lines).encode())
    return out


def instance(exported: Exported) -> dict[str, Any]:
    """One task. Sets of this style disagree on what `patch` means, so both directions also have a name of their own.

    There is no commit to start from: `gametape task checkout` writes the starting tree. `test_patch` makes the agent's
    tests into the pristine ones.
    """
    subject, task = exported.subject, exported.subject.task
    tests = task.tests
    keep = [*tests.pass_to_pass, *tests.held_out_passing]
    gold = unified(subject.start, exported.reference)
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
        "break_patch": unified(exported.reference, subject.start),
        "test_patch": unified(subject.start.under(task.test_paths), subject.suite),
        "environment": {
            "image": exported.image,
            "dependencies": task.dependencies,
            "import_roots": task.import_roots,
            "pytest_options": [
                option.replace("/workspace/", "").replace("/workspace", ".") for option in options(subject.start, None)
            ],
        },
    }
