"""The dtype of models on a CPU: float32, or bfloat16 where it is requested, works and is faster.

Some CPUs advertise instructions for bfloat16 that they do not have, and a process that uses them dies; so a subprocess
tries them. Its result is stored in the user's cache directory, by the CPU and the version of torch.

The default is float32: a trainer on a CPU works in it, and what bfloat16 samples is a little off from that.
"""

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from gametape.core.base_model import StrictModel
from gametape.core.errors import BadInput

CPU_DTYPE_VARIABLE = "GAMETAPE_CPU_DTYPE"
MIN_SPEEDUP = 1.2
"""How much faster than float32 it has to be."""
_TIMEOUT_SECONDS = 120


class Bfloat16Support(StrictModel):
    """The result of the trial: whether products are correct, and their speed as a multiple of float32."""

    works: bool
    speedup: float = 0.0


def choose_cpu_dtype() -> Literal["float32", "bfloat16"]:
    """By the environment variable: float32, which is the default, or auto."""
    setting = os.environ.get(CPU_DTYPE_VARIABLE) or "float32"
    if setting not in {"float32", "auto"}:
        raise BadInput(f"{CPU_DTYPE_VARIABLE} is float32 or auto, not {setting}")
    support = probe_bfloat16() if setting == "auto" else None
    return "bfloat16" if support and support.works and support.speedup >= MIN_SPEEDUP else "float32"


def probe_bfloat16() -> Bfloat16Support | None:
    """Tried once on each machine. None where torch is missing or the trial failed."""
    try:
        cache_file = _cache_file()
        return Bfloat16Support.model_validate_json(cache_file.read_text())
    except metadata.PackageNotFoundError:
        return None
    except (OSError, ValidationError):
        support = _probe_in_subprocess()
    if support:
        try:
            cache_file.parent.mkdir(parents=True, exist_ok=True)
            cache_file.write_text(support.model_dump_json())
        except OSError:
            return support  # it is tried again next time
    return support


def _probe_in_subprocess() -> Bfloat16Support | None:
    command = [sys.executable, "-m", __name__]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return None
    if result.returncode == -signal.SIGILL:
        return Bfloat16Support(works=False)
    return None if result.returncode else Bfloat16Support.model_validate_json(result.stdout.splitlines()[-1])


def _cache_file() -> Path:
    try:
        lines = Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines()
        cpu = [line for line in lines if line.startswith(("model name", "flags", "Features", "CPU"))]
    except OSError:
        cpu = []
    digest = hashlib.sha256("\n".join([*cpu, metadata.version("torch")]).encode()).hexdigest()[:16]
    directory = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return directory / "gametape" / f"bfloat16-{digest}.json"


def _measure() -> Bfloat16Support:
    """Time the products of a decode step, in the fastest layout for each type, and check attention."""
    import torch  # noqa: PLC0415 - only in the process that tries
    from torch.nn import functional  # noqa: PLC0415

    from gametape.engines.torch.linear import fastest_linear  # noqa: PLC0415

    def measure(dtype: torch.dtype) -> tuple[float, torch.Tensor]:
        x_NI, weight_OI = wide_NI.to(dtype), wide_OI.to(dtype)
        product = fastest_linear(weight_OI, weight_OI.nbytes)(weight_OI, None)
        y_NO = product(x_NI)
        seconds = min(_timed(lambda: product(x_NI)) for _ in range(50))
        heads_BHTD = y_NO.view(1, 4, -1, 64)
        return seconds, functional.scaled_dot_product_attention(heads_BHTD, heads_BHTD, heads_BHTD).float()

    torch.manual_seed(0)
    wide_NI, wide_OI = torch.randn(32, 576), torch.randn(3072, 576) / 24
    with torch.inference_mode():
        float32_seconds, expected = measure(torch.float32)
        bfloat16_seconds, actual = measure(torch.bfloat16)
    correct = bool((actual - expected).abs().max() < 0.05 * expected.abs().max())
    return Bfloat16Support(works=correct, speedup=round(float32_seconds / bfloat16_seconds, 2))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


if __name__ == "__main__":
    print(_measure().model_dump_json())
