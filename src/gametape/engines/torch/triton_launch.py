"""Kernels that start while the one before them ends (programmatic dependent launch, on GPUs that have it).

A decode step is two hundred short kernels, each of which needs the one before it. Every kernel here begins with
`follow`: it waits until all that was launched before has written what it had to write, and then lets the next kernel be
brought onto the device, where that one waits in turn. What a kernel does before `follow` may read only what was written
two or more kernels earlier.
"""

# mypy: disable-error-code="import-not-found, no-untyped-def, untyped-decorator"
# Kernels are typed by Triton, when they are compiled.

from functools import cache
from typing import Any

import torch
import triton
import triton.language as tl


@cache
def early() -> dict[str, Any]:
    """The launch arguments of a kernel that begins with `follow`."""
    able = torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0)
    return {"EARLY": True, "launch_pdl": True} if able else {"EARLY": False}


@triton.jit
def follow(EARLY: tl.constexpr):
    if EARLY:
        tl.extra.cuda.gdc_wait()
        tl.extra.cuda.gdc_launch_dependents()


@triton.jit
def fetch_ahead(pointers, EARLY: tl.constexpr):
    """Have lines of memory brought into the cache; weights, say, which no kernel of the step writes."""
    if EARLY:
        tl.inline_asm_elementwise(
            "prefetch.global.L2 [$1]; mov.u32 $0, 0;", "=r,l", [pointers.to(tl.int64)], tl.int32, is_pure=False, pack=1
        )
