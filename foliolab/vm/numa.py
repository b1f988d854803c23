# SPDX-License-Identifier: GPL-2.0-only
"""Guests whose processors and memory lie on several NUMA nodes."""

from msgspec import Struct

from foliolab.toml import Count

MOST = 16
"""Nodes, which is as many as arm64's kernels know of."""

_LOCAL, _FARTHEST = 10, 254
"""Distances of a node to itself, and to another at most."""


class Node(Struct, frozen=True, forbid_unknown_fields=True, rename={"memory_bytes": "memory"}):
    cpus: Count
    memory_bytes: int
    """In whole MiB; 0 is a node without memory."""

    @property
    def text(self) -> str:
        """As samples have it: "1x512M" is a processor beside 512 MiB."""
        return f"{self.cpus}x{self.memory_bytes >> 20}M"


Nodes = tuple[Node, ...]
"""x86_64 kernels number them anew: those with processors come first."""

Distances = tuple[tuple[int, ...], ...]
"""From each node to each: 10 to itself, more to others. Empty for QEMU's own, which are 10 and 20."""


def evenly(count: int, cpus: int, memory_bytes: int) -> Nodes:
    """Nodes that share processors and memory; what cannot be divided goes to the first ones."""
    share, rest = divmod(cpus, count)
    mib, rest_mib = divmod(memory_bytes >> 20, count)
    return tuple(Node(share + (number < rest), mib + (number < rest_mib) << 20) for number in range(count))


def complaint(nodes: Nodes, distances: Distances, cpus: int, memory_bytes: int) -> str:
    """What is wrong about the nodes of a guest, as the end of a sentence; empty if nothing is."""
    if len(nodes) > MOST:
        return f"are {len(nodes)}, and a guest has at most {MOST}"
    if sum(node.cpus for node in nodes) != cpus:
        return f"have {sum(node.cpus for node in nodes)} processors, and 'cpus' is {cpus}"
    if sum(node.memory_bytes for node in nodes) != memory_bytes:
        return f"have {sum(node.memory_bytes for node in nodes) >> 20} MiB, and 'memory' is {memory_bytes >> 20} MiB"
    if any(node.memory_bytes % (1 << 20) for node in nodes):
        return "take memory in whole MiB"
    if distances and not _fit(distances, len(nodes)):
        return f"take distances from each to each: {_LOCAL} to itself, {_LOCAL + 1} to {_FARTHEST} to others"
    return ""


def _fit(distances: Distances, count: int) -> bool:
    return len(distances) == count and all(
        len(row) == count
        and all(
            distance == _LOCAL if source == target else _LOCAL < distance <= _FARTHEST
            for target, distance in enumerate(row)
        )
        for source, row in enumerate(distances)
    )


def options(nodes: Nodes, distances: Distances) -> list[str]:
    """QEMU's options for the processors and nodes of a guest that has some."""
    cpus = sum(node.cpus for node in nodes)
    # Processors of one socket share a cache, and kernels warn of one that is on two nodes.
    argv = ["-smp", f"{cpus},sockets={cpus}"]
    first = 0
    for number, node in enumerate(nodes):
        parts = [f"node,nodeid={number}"]
        if node.memory_bytes:
            argv += ["-object", f"memory-backend-ram,id=memory{number},size={node.memory_bytes}"]
            parts.append(f"memdev=memory{number}")
        if node.cpus:
            parts.append(f"cpus={first}-{first + node.cpus - 1}")
        argv += ["-numa", ",".join(parts)]
        first += node.cpus
    for source, row in enumerate(distances):
        for target, distance in enumerate(row):
            argv += ["-numa", f"dist,src={source},dst={target},val={distance}"]
    return argv
