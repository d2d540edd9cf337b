"""A store for values by key."""

from kv.errors import *  # noqa: F403
from kv.store import Store, Transaction

__all__ = ["Store", "Transaction"]
