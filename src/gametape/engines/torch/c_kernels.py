"""Our own C kernels for a CPU, compiled for the machine when they are first used.

Where they cannot be compiled, the log says so and the caller uses torch's operators instead.
"""

import ctypes
import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_KERNELS = Path(__file__).with_name("kernels")
_FLAGS = (
    *("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"),
    *("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"),
)
"""OpenMP is the library that torch has loaded, so there is one set of threads. Only the order of sums is relaxed."""

ADDRESS, NUMBER, FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


def compile_kernels(source: str, signatures: Mapping[str, Sequence[type]], **sizes: int) -> ctypes.CDLL | None:
    """The kernels of one file, by name with the types of their arguments; `sizes` are constants for the compiler."""
    log = logging.getLogger(__name__)
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        log.warning("there is no C compiler for %s.c: this CPU decodes slower than it could", source)
        return None
    with tempfile.TemporaryDirectory(prefix="gametape-kernels-") as directory:
        library = Path(directory) / f"{source}.so"
        defines = [f"-D{name}={size}" for name, size in sizes.items()]
        result = subprocess.run(
            [compiler, *_FLAGS, *defines, str(_KERNELS / f"{source}.c"), "-lm", "-o", str(library)],
            capture_output=True,
            text=True,
            check=False,
        )
        if result.returncode:
            log.warning("%s does not compile %s.c: %s", compiler, source, result.stderr.strip())
            return None
        try:
            kernels = ctypes.CDLL(str(library))
        except OSError as error:  # a directory for temporary files that nothing may be run from
            log.warning("what %s made of %s.c cannot be loaded: %s", compiler, source, error)
            return None
    for name, types in signatures.items():
        getattr(kernels, name).argtypes, getattr(kernels, name).restype = types, None
    return kernels
