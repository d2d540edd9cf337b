"""A rank of the learner as an actor, on any node of a cluster."""

import os
import socket
import threading
from collections.abc import Sequence
from dataclasses import replace
from fcntl import ioctl
from struct import pack as pack_bytes
from typing import Any

import ray

from gametape.cluster.mailbox import Mailbox
from gametape.cluster.stored_weights import PackedWeights, checksum, pack
from gametape.train.rank_messages import Answer, Message, RankCall
from gametape.train.rank_process import RankStart, run_rank
from gametape.train.shards import TCP

_SIOCGIFADDR = 0x8915


class RankActor:
    """One call of it tells, another one asks; a thread of its own learns."""

    def __init__(self) -> None:
        self._mailbox = Mailbox()
        self._published: PackedWeights = {}

    def pid(self) -> int:
        return os.getpid()

    def meeting_point(self) -> str:
        """Where the others find this one, if it is the first."""
        with socket.socket() as probe:
            probe.bind(("", 0))
            return f"{TCP}{ray.util.get_node_ip_address()}:{probe.getsockname()[1]}"

    def begin(self, start: RankStart) -> None:
        place = replace(start.place, interface=_interface_of(ray.util.get_node_ip_address()))
        work = (self, replace(start, place=place))
        threading.Thread(target=lambda: run_rank(*work), daemon=True, name="rank").start()

    def tell(self, calls: Sequence[RankCall | None]) -> None:
        self._mailbox.tell(calls)

    def poll(self, seconds: float) -> list[Message]:
        return self._mailbox.poll(seconds)

    def published(self) -> PackedWeights:
        """The weights of the last `publish`: only who wants them fetches them."""
        return self._published

    def receive(self) -> RankCall | None:
        """What a call only refers to is fetched here, by each rank for itself."""
        call: RankCall | None = self._mailbox.receive()
        if call is None:
            return None
        arguments = (ray.get(one) if isinstance(one, ray.ObjectRef) else one for one in call.arguments)
        return replace(call, arguments=tuple(arguments))

    def send(self, message: Message) -> None:
        """Weights stay here; their checksum goes."""
        if isinstance(message, Answer) and _are_weights(message.value):
            self._published = pack(message.value)
            message = Answer(checksum(self._published))
        self._mailbox.send(message)


def _are_weights(value: Any) -> bool:
    return isinstance(value, dict) and bool(value)


def _interface_of(address: str) -> str:
    """The network interface with this address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for _, name in socket.if_nameindex():
            try:
                found = ioctl(probe, _SIOCGIFADDR, pack_bytes("256s", name.encode()))[20:24]
            except OSError:
                continue
            if socket.inet_ntoa(found) == address:
                return name
    return ""
