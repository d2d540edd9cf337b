"""Lines that begin alike as one tree: what they have in common is computed once, choices included."""

from collections.abc import Iterator, Sequence

from gametape.train.packing import Node


class Trie:
    """Nodes to be packed. A line leaves the line before it with which it has most in common where they part."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self._starts: list[int] = []
        """By node: how many tokens of its lines come before it."""

    def grow(self, lines: Sequence[Sequence[int]]) -> list[int]:
        """For each line the node with which it ends, which has its last token at least. Only these lines are compared
        with each other."""
        leaves: list[int] = []
        for number, ids in enumerate(lines):
            shared = [min(common_prefix(ids, other), len(ids) - 1) for other in lines[:number]]
            most = max(shared, default=0)
            leaves.append(self.hang(leaves[shared.index(most)], most, ids[most:]) if most else self._root(ids))
        return leaves

    def hang(self, leaf: int, at: int, ids: Sequence[int], detached: bool = False) -> int:
        """A node of these tokens after the first `at` ones of the line that ends with `leaf`."""
        node = next(above for above in self._upwards(leaf) if self._starts[above] < at)
        return self._added(Node(ids, parent=node, at=at - self._starts[node], detached=detached), at)

    def _root(self, ids: Sequence[int]) -> int:
        return self._added(Node(ids), 0)

    def _added(self, node: Node, start: int) -> int:
        self.nodes.append(node)
        self._starts.append(start)
        return len(self.nodes) - 1

    def _upwards(self, node: int | None) -> Iterator[int]:
        while node is not None:
            yield node
            node = self.nodes[node].parent


def common_prefix(ids: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens both begin with."""
    pairs = zip(ids, other, strict=False)
    return next((at for at, (mine, theirs) in enumerate(pairs) if mine != theirs), min(len(ids), len(other)))
