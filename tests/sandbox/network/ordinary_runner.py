"""Plays the attacks as whoever starts it. Reads a list of names on standard input; see test_network_attacks.py."""

import json
import sys

from tests.sandbox.network.attacks import ATTACKS, Attack
from tests.sandbox.network.play import complaints, play
from tests.sandbox.network.stage import open_stage


def main() -> None:
    wanted = set(json.load(sys.stdin))
    with open_stage() as stage:
        honest = Attack("honest", "show(get(f'http://allowed.test:{A}/hello').partition(b'\\r\\n\\r\\n')[2])", None)
        served = play(honest, stage).stdout
        found = {a.name: complaints(a, stage, play(a, stage)) for a in ATTACKS if a.name in wanted}
    print(json.dumps({"served": served, "complaints": found}))


if __name__ == "__main__":
    main()
