"""Kernels of our own for a CPU, compiled for the machine when they are first used.

Where there is no C compiler, or one that cannot do it, the log says so and whoever asked goes on with what torch has.
"""

import ctypes
import logging
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

_KERNELS = Path(__file__).with_name("kernels")
_FLAGS = (
    *("-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"),
    *("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"),
)
"""OpenMP is the one that torch has loaded, so there is one set of threads. Sums may be taken in any order, no more."""

ADDRESS, NUMBER, FLOAT = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


def compile_kernels(source: str, **sizes: int) -> ctypes.CDLL | None:
    """The kernels of one file, with these sizes known to the compiler."""
    log = logging.getLogger(__name__)
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        log.warning("there is no C compiler for %s.c: this CPU decodes slower than it could", source)
        return None
    with tempfile.TemporaryDirectory(prefix="gametape-kernels-") as directory:
        built = Path(directory) / f"{source}.so"
        given = [f"-D{name}={size}" for name, size in sizes.items()]
        done = subprocess.run(
            [compiler, *_FLAGS, *given, str(_KERNELS / f"{source}.c"), "-lm", "-o", str(built)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            log.warning("%s does not compile %s.c: %s", compiler, source, done.stderr.strip())
            return None
        try:
            return ctypes.CDLL(str(built))
        except OSError as error:  # a directory for temporary files that nothing may be run from
            log.warning("what %s made of %s.c cannot be loaded: %s", compiler, source, error)
            return None
