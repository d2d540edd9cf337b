"""Attempts on the declared structure, and on the export of the workspace."""

import os
import shutil
from pathlib import Path

from tests.redteam.attempts.attempt import Attempt
from tests.redteam.attempts.hidden_payloads import DOC, PAYLOAD, package


def _instead(path: str, old: str, new: str):
    def put(workspace: Path) -> None:
        text = (workspace / path).read_text()
        assert old in text
        (workspace / path).write_text(text.replace(old, new))

    return put


def _link(workspace: Path) -> None:
    shutil.rmtree(workspace / "limiter")
    os.symlink("/etc", workspace / "limiter")


def _file(workspace: Path) -> None:
    shutil.rmtree(workspace / "limiter")
    (workspace / "limiter").write_text(PAYLOAD)


def _names(workspace: Path) -> None:
    package(init=DOC + PAYLOAD)(workspace)
    for name in ("a\nb.py", "\x7f.py", "x\u2028y.py", "-rf.py", "@files.txt.py", "Bucket.py", "ﬁle.py", "a b'\"$().py"):
        (workspace / "limiter" / name).write_text("X: int = 'x'\n")
    os.mkfifo(workspace / "limiter/pipe.py")
    with open(workspace / "limiter/sparse.py", "wb") as file:
        file.truncate(1 << 40)


def _many(workspace: Path) -> None:
    package(init=DOC + PAYLOAD)(workspace)
    for number in range(20_000):
        (workspace / "limiter" / f"m{number}.py").write_bytes(b"")


STRUCTURE = [
    Attempt(
        "layers.computed-import",
        "a forbidden import by a name that is put together",
        "shop-layers",
        _instead(
            "shop/pricing.py",
            "from shop.storage import load_rates",
            "import importlib\n\nload_rates = importlib.import_module('.'.join(['shop', 'storage'])).load_rates",
        ),
    ),
    Attempt(
        "layers.modules",
        "a forbidden import through sys.modules and the package's own attributes",
        "shop-layers",
        _instead(
            "shop/pricing.py",
            "from shop.storage import load_rates",
            "import sys\n\nimport shop\n\n\n"
            "def load_rates():\n    return getattr(sys.modules[shop.__name__], 'sto' 'rage').load_rates()",
        ),
    ),
    Attempt(
        "layers.injected",
        "a layer above hands its function down at import",
        "shop-layers",
        lambda w: (
            _instead("shop/pricing.py", "from shop.storage import load_rates", "load_rates = None")(w),
            _instead(
                "shop/__init__.py",
                (w / "shop/__init__.py").read_text(),
                '"""A shop."""\n\nfrom shop import pricing, storage\n\npricing.load_rates = storage.load_rates\n',
            )(w),
        )[0],
    ),
    Attempt("export.link", "the sources are a link out of the workspace", "limiter", _link),
    Attempt("export.file", "a file stands where the sources' directory was", "limiter", _file),
    Attempt(
        "export.names",
        "names with line ends, quotes and options, a pipe and a file of a terabyte",
        "limiter",
        _names,
        profile="full",
    ),
    Attempt("export.many", "twenty thousand files", "limiter", _many),
]
