"""`gametape doctor`: test what this machine can do."""

import platform
import shutil
import subprocess
from importlib import metadata
from typing import Any

import typer

from gametape.cli.shared import AsJson, emit

app = typer.Typer(rich_markup_mode=None, add_completion=False)

_PROGRAMS = {
    "git": "threads keep their memory in it, and repositories are mined from it (apt-get install git)",
    "rg": "searches in large workspaces are faster with it than with grep (apt-get install ripgrep)",
}
"""What other programs are for."""


@app.command()
def doctor(
    as_json: AsJson = False,
) -> None:
    """Test every sandbox backend, look for torch and a GPU, and say how to get what is missing.

    Exits 0 when at least one sandbox works, else 3.

    Example: gametape doctor
    """

    facts = examine()
    emit(facts, as_json, _show)
    raise typer.Exit(0 if any(backend["available"] for backend in facts["backends"].values()) else 3)


def examine() -> dict[str, Any]:
    from gametape.engines.torch.cpu_dtype import probe_bfloat16
    from gametape.sandbox.backend import backends

    facts = probe_bfloat16()
    device, dtype, reason = _device()
    return {
        "backends": {name: backend.probe().model_dump(mode="json") for name, backend in backends().items()},
        "programs": {name: shutil.which(name) is not None for name in _PROGRAMS},
        "python": platform.python_version(),
        "torch": _version("torch"),
        "cpu_bfloat16": facts.model_dump() if facts else None,
        "gpu": _gpu(),
        "device": device,
        "dtype": dtype,
        "device_reason": reason,
    }


def _device() -> tuple[str | None, str | None, str]:
    """What models use here and compute in, and why."""
    from gametape.core.errors import GametapeError

    try:
        from gametape.engines.torch.device import placement_from_environment, why_placement
    except ImportError:
        return None, None, "torch is not installed"
    try:
        placement = placement_from_environment()
    except GametapeError as error:
        return None, None, str(error)
    return str(placement), placement.dtype, why_placement(placement)


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _gpu() -> str | None:
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = [program, "--query-gpu=name,memory.total", "--format=csv,noheader"]
    answer = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    return answer.stdout.strip() or None if answer.returncode == 0 else None


def _show(facts: dict[str, Any]) -> None:
    from rich.console import Console

    from gametape.terminal.table import Column, print_table

    rows = []
    for name, backend in facts["backends"].items():
        has = [key if value is True else f"{key} {value}" for key, value in backend["capabilities"].items() if value]
        rows.append([name, "yes" if backend["available"] else "no", ", ".join(has), "; ".join(backend["missing"])])
    console = Console(highlight=False, soft_wrap=True)
    columns = [Column("backend"), Column("works"), Column("has", wraps=True), Column("missing", wraps=True)]
    print_table(columns, rows, console, title="Sandbox backends")
    for name, works in facts["programs"].items():
        if not works:
            console.print(f"{name} is not installed: {_PROGRAMS[name]}")
    console.print(f"Python {facts['python']}, torch {facts['torch'] or 'not installed'}, GPU {facts['gpu'] or 'none'}")
    console.print(f"Models run on: {facts['device'] or 'nothing'} ({facts['device_reason']})")
    if trial := facts["cpu_bfloat16"]:
        pays = f"{trial['speedup']} times as fast as float32" if trial["works"] else "does not work"
        console.print(f"bfloat16 on this CPU: {pays}")
