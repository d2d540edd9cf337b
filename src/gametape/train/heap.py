"""Memory of large tensors on the CPU goes back to the system when they are freed.

The C library takes blocks of up to 32 MB from its heap once it has seen such sizes come and go. Activations of a few
megabytes that live for a whole step then lie between temporaries that do not, and the holes between them stay with the
process. With a fixed threshold every large block is mapped by itself. Asking the system for fresh pages costs a little
time, which short batches of tiny networks would notice: the learner calls this for large ones.
"""

import ctypes

_M_MMAP_THRESHOLD = -3
_LARGE = 4 << 20


def map_large_blocks() -> bool:
    """From now on, in this process; False where the C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_MMAP_THRESHOLD, _LARGE))
