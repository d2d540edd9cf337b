"""The policy of another time, forward only: as it was at the start, or as a slow average of what it has been since.

Of a policy that is trained in full it is a copy; under adapters it is the same weights with other adapters, or none.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Protocol

import torch
from torch import Tensor

from gametape.train.batch import PackedBatch
from gametape.train.lora import Adapters, Used
from gametape.train.packing import PackedTokens
from gametape.train.policy_module import PolicyModule
from gametape.train.shards import as_sharded


class ReferencePolicy(Protocol):
    """Scores as `PolicyModule` does."""

    def chosen_logprobs(self, batch: PackedBatch, temperature: float) -> Tensor: ...

    def hidden_at(self, packed: PackedTokens, rows_T: Tensor) -> tuple[Tensor, Tensor]:
        """As they are until `release`."""
        ...

    def release(self) -> None:
        """What `hidden_at` gave is no longer needed."""
        ...

    def modules(self) -> Sequence[PolicyModule]:
        """Modules of its own, to be sharded."""
        ...

    def follow(self, share: float) -> None:
        """Move by this share of the distance to the policy as it is now."""
        ...

    def tensors(self) -> dict[str, Tensor]:
        """What has to be saved of it, sharded as it is."""
        ...

    def load(self, tensors: Mapping[str, Tensor]) -> None: ...


def make_reference(module: PolicyModule, moves: bool) -> ReferencePolicy:
    """As the policy is now; it `moves` where it will follow. Before anything is sharded."""
    if module.adapters is None:
        return PolicyCopy(module)
    if moves:
        module.adapters.add_slow()
    return AdapterView(module, module.adapters, "slow" if moves else "none")


class PolicyCopy:
    """A copy of all weights."""

    def __init__(self, policy: PolicyModule) -> None:
        self._policy = policy
        self._module = PolicyModule(deepcopy(policy.network).requires_grad_(False).eval())

    def chosen_logprobs(self, batch: PackedBatch, temperature: float) -> Tensor:
        logp_M: Tensor = self._module.chosen_logprobs(batch, temperature)
        self._module.release()
        return logp_M

    def hidden_at(self, packed: PackedTokens, rows_T: Tensor) -> tuple[Tensor, Tensor]:
        hidden_TE, head_VE = self._module.hidden_at(packed, rows_T)
        return hidden_TE, head_VE

    def release(self) -> None:
        self._module.release()

    def modules(self) -> Sequence[PolicyModule]:
        return (self._module,)

    def follow(self, share: float) -> None:
        with torch.no_grad():
            theirs = self._policy.network.parameters()
            for mine, other in zip(self._module.network.parameters(), theirs, strict=True):
                mine.lerp_(other, share)

    def tensors(self) -> dict[str, Tensor]:
        return {name: tensor.detach() for name, tensor in self._module.network.named_parameters()}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self._module.network.named_parameters():
                parameter.copy_(as_sharded(tensors[name], parameter))


class AdapterView:
    """The policy's own weights with other adapters. It gives nothing back after a forward: the policy's head may be in
    use, and the learner gives it back before it changes anything."""

    def __init__(self, policy: PolicyModule, adapters: Adapters, used: Used) -> None:
        self._policy, self._adapters, self._used = policy, adapters, used

    def chosen_logprobs(self, batch: PackedBatch, temperature: float) -> Tensor:
        with self._adapters.using(self._used):
            logp_M: Tensor = self._policy.chosen_logprobs(batch, temperature)
        return logp_M

    def hidden_at(self, packed: PackedTokens, rows_T: Tensor) -> tuple[Tensor, Tensor]:
        with self._adapters.using(self._used):
            hidden_TE, head_VE = self._policy.hidden_at(packed, rows_T)
        return hidden_TE, head_VE

    def release(self) -> None:
        """Nothing is its own."""

    def modules(self) -> Sequence[PolicyModule]:
        return ()

    def follow(self, share: float) -> None:
        self._adapters.follow(share)

    def tensors(self) -> dict[str, Tensor]:
        return self._adapters.tensors("slow") if self._used == "slow" else {}

    def load(self, tensors: Mapping[str, Tensor]) -> None:
        if self._used == "slow":
            self._adapters.load(tensors, "slow")
