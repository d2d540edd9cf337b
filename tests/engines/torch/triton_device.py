"""Where kernels are tested: on a GPU if there is one, else by Triton's interpreter on the CPU.

To be imported before any module that defines a kernel. Triton decides when it is first imported whether it interprets.
"""

import os
import sys

import pytest
import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")

if DEVICE.type == "cpu" and os.environ.get("TRITON_INTERPRET") != "1":
    if "triton" in sys.modules:
        pytest.skip("Triton was imported to compile, and there is no GPU", allow_module_level=True)
    os.environ["TRITON_INTERPRET"] = "1"
pytest.importorskip("triton", reason="Triton is not installed")
