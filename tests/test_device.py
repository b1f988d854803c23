# SPDX-License-Identifier: GPL-2.0-only
"""Disks that take time, as files and users name them."""

import re
from pathlib import Path

import pytest

from foliolab.device import Device, device_of, load_devices
from foliolab.errors import BadExperiment, UsageError
from foliolab.files import REPOSITORY


def test_each_named_disk_is_found_by_its_name() -> None:
    assert list(load_devices()) == ["nvme", "sata", "cloud", "hdd", "remote"]
    assert all(device_of(name) == device for name, device in load_devices().items())


def test_four_numbers_are_a_disk_of_that_name() -> None:
    assert device_of("1000,125,3000,64") == Device("1000,125,3000,64", 1000, 125, 3000, 64)
    assert device_of("0010,125,0,1").name == "10,125,0,1"


@pytest.mark.parametrize(
    "text", ["", "ssd", "1,2,3", "1,2,3,4,5", "-1,2,3,4", "a,b,c,d", "1.5,2,3,4", "1,2,3,1" + "0" * 5000]
)
def test_what_is_no_disk_is_refused_with_those_that_are(text: str) -> None:
    with pytest.raises(UsageError, match="there are nvme, sata, cloud, hdd, remote"):
        device_of(text)


@pytest.mark.parametrize("text", ["1,0,0,1", "1,18001,0,1", "1,1,0,0", "1,1,0,65", "100000001,1,0,1"])
def test_numbers_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="There is no such device"):
        device_of(text)


def test_a_mistake_in_the_file_names_its_place(tmp_path: Path) -> None:
    file = tmp_path / "devices.toml"
    file.write_text("[slow]\nlatency_us = -1\nmegabytes_per_second = 1\nrequests_per_second = 0\nqueue_depth = 1\n")
    with pytest.raises(BadExperiment, match=r"devices\.toml: 'slow\.latency_us' is wrong"):
        load_devices(file)


def test_the_document_has_each_profile() -> None:
    text = (REPOSITORY / "docs/seconds.md").read_text()
    for device in load_devices().values():
        rate = f"`{device.requests_per_second:,}`" if device.requests_per_second else "no limit"
        speed = f"{device.megabytes_per_second:,} MB/s"
        row = rf"\| `{device.name}` \| [^|]+ \| `{speed}` \| {rate} \| `{device.queue_depth}` \|"
        assert re.search(row, text), device.name
