"""What was there before an engine is left out of collections as long as one is open, and found afterwards."""

import gc
import weakref

from gametape.engines.torch.garbage import leave_out_what_is_there, look_at_all


class Cycle:
    def __init__(self) -> None:
        self.itself = self


def test_cycles_from_before_are_found_once_the_last_engine_is_closed() -> None:
    before = Cycle()
    gone = weakref.ref(before)
    leave_out_what_is_there()
    leave_out_what_is_there()
    del before
    gc.collect()
    assert gone() is not None
    newer = Cycle()
    gone_too = weakref.ref(newer)
    del newer
    gc.collect()
    assert gone_too() is None
    look_at_all()
    gc.collect()
    assert gone() is not None
    look_at_all()
    gc.collect()
    assert gone() is None
