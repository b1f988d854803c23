# SPDX-License-Identifier: GPL-2.0-only
"""What an experiment file says of a guest's memory, nodes and disk."""

from collections.abc import Mapping, Sequence
from typing import Any

from foliohost.sizes import parse_size
from foliolab.experiment.spec import SIZES, Parameters
from foliolab.toml import Place, Positive
from foliolab.vm import numa


def in_bytes(place: Place, content: Mapping[str, Any]) -> dict[str, Any]:
    """A table of parameters with numbers of bytes for sizes, and with a table for each node."""
    content = {**content}
    for name in SIZES.values():
        if name in content:
            content[name] = _size(place.at(name), content[name])
    if "nodes" in content:
        content["nodes"] = _nodes(place.at("nodes"), content)
    return content


def check_machine(place: Place, table: Parameters, argv: Sequence[str]) -> None:
    """Complain about nodes that do not make up the guest, and about a bus that is not for its disks or workload."""
    if table.nodes and (wrong := numa.complaint(table.nodes, table.distances, table.cpus, table.memory_bytes)):
        place.at("nodes").fail(wrong)
    if table.distances and not table.nodes:
        place.at("distances").fail("is for guests with 'nodes'")
    if table.disk_bus == "virtio":
        return
    if table.content == "stores" or table.programs:
        place.at("disk_bus").fail("is for guests with one disk")
    if any(word.startswith("/dev/") for word in argv):
        place.at("disk_bus").fail("is not for a workload that names a disk of virtio")


def _nodes(place: Place, content: Mapping[str, Any]) -> object:
    """A table for each node, from their number or from tables whose memory is a size, or "0" for none."""
    match content["nodes"], content.get("cpus"), content.get("memory"):
        case int(count), int(cpus), int(memory):
            return numa.evenly(place.convert(count, Positive), cpus, memory)
        case list(tables), _, _:
            return [_node(place.at(f"[{number}]"), table) for number, table in enumerate(tables)]
    return content["nodes"]


def _node(place: Place, content: object) -> object:
    if not isinstance(content, dict) or "memory" not in content:
        return content
    memory = content["memory"]
    return {**content, "memory": 0 if memory == "0" else _size(place.at("memory"), memory)}


def _size(place: Place, text: object) -> int:
    """Bytes, from a string such as "20G"."""
    try:
        return parse_size(text if isinstance(text, str) else f"{text} without quotes")
    except ValueError as error:
        place.fail(f"is wrong: {error}")
