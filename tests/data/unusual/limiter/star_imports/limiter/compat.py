"""What the rest of the package needs, whatever the version."""

import sys
from functools import partial

from limiter.bucket import Bucket

if sys.version_info < (3, 9):
    raise ImportError("limiter needs Python 3.9")

__all__ = ["Bucket", "partial"]
