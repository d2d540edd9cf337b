"""Where a demo lies and what it has done so far: `DIR/demo.json` grows by a part with every act that ends."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from gametape.core.errors import BadInput, Lacking
from gametape.record.atomic import write_atomically
from gametape.record.trouble import shown, unwritable
from gametape.studio.report import DEMO

_ROOT = Path(__file__).parents[3]
QUICK = (
    *("tiny.layers=1", "tiny.width=32", "tiny.heads=2", "tiny.window=256", "warm.episodes=320"),
    *("rl.groups=2", "rl.group_size=4", "eval.every=128", "eval.episodes=16", "flops=1_500_000_000"),
)
"""Every part at work for seconds only."""
_BEGUN = {"seed", "quick", "cores", "seconds"}
_KINDS: Mapping[str, tuple[type, ...]] = {
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
class Stage:
    """`told` is what `demo.json` holds."""

    out: Path
    home: Path
    told: dict[str, Any]

    @classmethod
    def new(cls, out: Path, home: Path, seed: int, quick: bool) -> Self:
        if (out / DEMO).exists():
            raise BadInput(f"{shown(out)}: there is a demo here; give --resume {shown(out)}, or another --out")
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadInput(f"{shown(out)}: is there already; give a new directory")
        stage = cls(out, home, {"seed": seed, "quick": quick, "cores": os.cpu_count() or 1, "seconds": 0.0})
        try:
            out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(out, error) from error
        stage.save()
        return stage

    @classmethod
    def taken_up(cls, out: Path, home: Path) -> Self:
        try:
            told = json.loads((out / DEMO).read_text())
        except (OSError, ValueError):
            raise BadInput(f"{shown(out)}: there is no demo here to go on with (no {DEMO})") from None
        if not isinstance(told, dict) or not told.keys() >= _BEGUN:
            raise BadInput(f"{shown(out / DEMO)}: not what a demo writes there; begin another")
        for name, kind in _KINDS.items():
            if name in told and type(told[name]) not in kind:
                raise BadInput(f"{shown(out / DEMO)}: {name}: not what a demo writes there; begin another")
        return cls(out, home, told)

    def keep(self, **parts: Any) -> None:
        self.told.update(parts)
        self.save()

    def save(self) -> None:
        write_atomically(self.out / DEMO, json.dumps(self.told, indent=1, allow_nan=False).encode())

    @property
    def seed(self) -> int:
        return int(self.told["seed"])

    def config(self, arm: str) -> Path:
        return _shipped("configs", f"demo-{arm.replace('_', '-')}.toml")

    @property
    def changes(self) -> tuple[str, ...]:
        """What is other than in these files."""
        return (f"seed={self.seed}", *(QUICK if self.told["quick"] else ()))

    @property
    def start(self) -> Path:
        """The weights that both arms begin with: here, wherever the demo has been moved to."""
        return self.out / "warm" / "start"

    @property
    def project(self) -> Path:
        return _shipped("examples", "demo-project")

    @property
    def python(self) -> Path:
        """This interpreter: it has what the example's tests need."""
        return Path(sys.executable)


def _shipped(*names: str) -> Path:
    path = _ROOT.joinpath(*names)
    if not path.exists():
        raise Lacking(
            f"{'/'.join(names)} is not part of an installed gametape: run the demo in a clone, with make demo"
        )
    return path
