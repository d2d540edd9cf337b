"""A second set of weights: written to while the first one decodes, and put in its place between two steps."""

from copy import deepcopy

import torch

from gametape.engines.torch.decoder import Decoder
from gametape.engines.torch.stepper import Stepper
from gametape.engines.torch.weights import Weights, fitting


class Shadow:
    """Belongs to an engine that has weights of its own, which nobody else reads or changes."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._spare = Decoder(deepcopy(stepper.decoder.module), stepper.decoder.spec)

    def write(self, weights: Weights) -> None:
        """All of them, or none if they do not fit. Not while `swap` runs."""
        fitting(self._spare.module, weights).copy()
        self._spare.refresh()

    def swap(self, version: int) -> None:
        """What was written is what decodes now.

        The two sets change places; but recorded steps hold the addresses of the first, so there the second is copied.
        """
        live = self._stepper.decoder
        if self._stepper.recorded:
            with torch.no_grad():
                torch._foreach_copy_(list(live.module.parameters()), list(self._spare.module.parameters()))
            self._stepper.weights_changed(version)
        else:
            self._stepper.weights_changed(version, self._spare)
            self._spare = live
