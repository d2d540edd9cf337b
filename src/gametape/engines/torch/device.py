"""Where weights lie and what they compute in: the GPU in bfloat16 where there is one, else the CPU in float32.

A run's configuration has `device` and `dtype`. Models that are opened elsewhere (`solve`, `eval`, `coach`, threads) go
by the environment variables `GAMETAPE_DEVICE` and `GAMETAPE_DTYPE`, with the same values.
"""

import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch

from gametape.core.config import DeviceName, DtypeName
from gametape.core.errors import BadInput, MissingDependency
from gametape.engines.torch import cpu_dtype

DEVICE_VARIABLE = "GAMETAPE_DEVICE"
DTYPE_VARIABLE = "GAMETAPE_DTYPE"


@dataclass(frozen=True)
class Placement:
    """A device that is there, and a dtype that works on it."""

    device: Literal["cpu", "cuda"]
    dtype: Literal["float32", "bfloat16"]

    @property
    def torch_dtype(self) -> torch.dtype:
        dtype: torch.dtype = getattr(torch, self.dtype)
        return dtype

    def __str__(self) -> str:
        return f"{self.device} in {self.dtype}"


CPU_FLOAT32 = Placement("cpu", "float32")


def choose_placement(
    device: DeviceName = "auto", dtype: DtypeName = "auto", cpu_default: Literal["float32", "bfloat16"] = "float32"
) -> Placement:
    """Refuses what is not there. `cpu_default` is the dtype of a CPU where nothing is asked for."""
    if device == "cuda" and not torch.cuda.is_available():
        raise MissingDependency(f"device = cuda: {why_no_cuda()}")
    found: Literal["cpu", "cuda"] = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
    if dtype == "bfloat16" and found == "cpu":
        trial = cpu_dtype.probe_bfloat16()
        if trial is None or not trial.works:
            raise MissingDependency("dtype = bfloat16: this CPU does not compute in it; take float32")
    if dtype != "auto":
        return Placement(found, dtype)
    return Placement(found, "bfloat16" if found == "cuda" else cpu_default)


def placement_from_environment() -> Placement:
    """For models that no run's configuration is about."""
    device = _from_environment(DEVICE_VARIABLE, get_args(DeviceName))
    dtype = _from_environment(DTYPE_VARIABLE, get_args(DtypeName))
    try:
        return choose_placement(device, dtype, cpu_dtype.choose_cpu_dtype())
    except MissingDependency as error:
        raise MissingDependency(f"{error} ({DEVICE_VARIABLE}, {DTYPE_VARIABLE})") from None


def why_placement(placement: Placement) -> str:
    """In words: why this device, and why this dtype."""
    device = os.environ.get(DEVICE_VARIABLE) or "auto"
    dtype = os.environ.get(DTYPE_VARIABLE) or "auto"
    if device != "auto":
        where = f"{DEVICE_VARIABLE} asks for it"
    elif placement.device == "cuda":
        count = torch.cuda.device_count()
        others = f" and {count - 1} more" if count > 1 else ""
        where = f"torch {torch.__version__} finds {torch.cuda.get_device_name(0)}{others}"
    else:
        where = why_no_cuda()
    if dtype != "auto":
        return f"{where}; {DTYPE_VARIABLE} asks for {dtype}"
    if placement.device == "cuda":
        return f"{where}; bfloat16 is the default of a GPU"
    faster = cpu_dtype.choose_cpu_dtype() == "bfloat16"
    return f"{where}; {'bfloat16 is faster on this CPU' if faster else 'float32 is the default of a CPU'}"


def why_no_cuda() -> str:
    """In words, where torch has no GPU."""
    if torch.version.cuda is None:
        return f"torch {torch.__version__} is a build for CPUs; install one for CUDA"
    return f"torch {torch.__version__} finds no GPU"


def _from_environment(variable: str, values: tuple[str, ...]) -> Any:
    value = os.environ.get(variable) or "auto"
    if value not in values:
        raise BadInput(f"{variable} is {', '.join(values[:-1])} or {values[-1]}, not {value}")
    return value
