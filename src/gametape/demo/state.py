"""The directory of a demo and the results of its stages, stored in `DIR/demo.json`."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from gametape.core.errors import BadInput
from gametape.record.atomic import write_atomically
from gametape.record.errors import printable_path, write_error
from gametape.record.shipped_files import shipped_file
from gametape.studio.sections.demo import DEMO_SUMMARY_FILE

QUICK_CHANGES = (
    *("tiny.layers=1", "tiny.width=32", "tiny.heads=2", "tiny.window=256", "warm.episodes=320"),
    *("rl.groups=2", "rl.group_size=4", "eval.every=128", "eval.episodes=16", "flops=1_500_000_000"),
)
"""Settings with which every stage takes seconds."""
_REQUIRED = {"seed", "quick", "cores", "seconds"}
_TYPES: Mapping[str, tuple[type, ...]] = {
    "seed": (int,),
    "quick": (bool,),
    "cores": (int,),
    "seconds": (int, float),
    "mined": (dict,),
    "rollouts": (list,),
    "warm": (dict,),
    "arms": (dict,),
}


@dataclass(frozen=True)
class DemoState:
    """A demo. `data` is the content of `demo.json`."""

    out: Path
    home: Path
    data: dict[str, Any]

    @classmethod
    def new(cls, out: Path, home: Path, seed: int, quick: bool) -> Self:
        if (out / DEMO_SUMMARY_FILE).exists():
            raise BadInput(
                f"{printable_path(out)}: there is a demo here; give --resume {printable_path(out)}, or another --out"
            )
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadInput(f"{printable_path(out)}: is there already; give a new directory")
        state = cls(out, home, {"seed": seed, "quick": quick, "cores": os.cpu_count() or 1, "seconds": 0.0})
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(out, error) from error
        state.save()
        return state

    @classmethod
    def resume(cls, out: Path, home: Path) -> Self:
        try:
            data = json.loads((out / DEMO_SUMMARY_FILE).read_text())
        except (OSError, ValueError):
            raise BadInput(
                f"{printable_path(out)}: there is no demo here to continue (no {DEMO_SUMMARY_FILE})"
            ) from None
        if not isinstance(data, dict) or not data.keys() >= _REQUIRED:
            raise BadInput(f"{printable_path(out / DEMO_SUMMARY_FILE)}: not what a demo writes there; begin another")
        for name, kind in _TYPES.items():
            if name in data and type(data[name]) not in kind:
                raise BadInput(
                    f"{printable_path(out / DEMO_SUMMARY_FILE)}: {name}: not what a demo writes there; begin another"
                )
        return cls(out, home, data)

    def keep(self, **parts: Any) -> None:
        self.data.update(parts)
        self.save()

    def save(self) -> None:
        write_atomically(self.out / DEMO_SUMMARY_FILE, json.dumps(self.data, indent=1, allow_nan=False).encode())

    @property
    def seed(self) -> int:
        return int(self.data["seed"])

    def config(self, arm: str) -> Path:
        return shipped_file("configs", f"demo-{arm.replace('_', '-')}.toml")

    @property
    def changes(self) -> tuple[str, ...]:
        """The overrides of the configuration files."""
        return (f"seed={self.seed}", *(QUICK_CHANGES if self.data["quick"] else ()))

    @property
    def start(self) -> Path:
        """The weights that both arms begin with; relative to `out`, so that a demo can be moved."""
        return self.out / "warm" / "start"

    @property
    def project(self) -> Path:
        return shipped_file("examples", "demo-project")

    @property
    def python(self) -> Path:
        """This interpreter, which has the dependencies of the example's tests."""
        return Path(sys.executable)
