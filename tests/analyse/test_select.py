# SPDX-License-Identifier: GPL-2.0-only
from foliolab.analyse.rows import group_samples
from foliolab.campaign.sample import Sample, with_key
from tests.samples import sample


def kept(*samples: Sample) -> list[str]:
    """The keys of those that can be compared."""
    (group,) = group_samples(samples)
    assert group.older == len(samples) - len(group.samples)
    return [each.key for each in group.samples]


def test_seconds_of_two_hosts_are_never_in_one_table() -> None:
    hosts = ["a", "b"]
    timed, emulated = ([sample(1, backend=name, host=host) for host in hosts] for name in ("qemu-kvm", "qemu-tcg"))
    groups = group_samples(map(with_key, (*timed, *emulated)))
    assert [([each.host for each in group.samples], group.timed_on) for group in groups] == [
        (["a"], "a"),
        (["b"], "b"),
        (["b"], ""),
    ]
    assert [" on a" in group.title for group in groups] == [True, False, False]


def test_data_of_other_parameters_does_not_count_as_newer() -> None:
    first = sample(key="first", data="d1")
    other = sample(key="other", data="d2", parameters={"cpus": 1})
    elsewhere = sample(key="elsewhere", cell={"pattern": "sequential"})
    assert kept(first, other, elsewhere) == ["first", "elsewhere"]


def test_older_data_of_the_same_cell_is_left_out() -> None:
    assert kept(sample(key="old", data="d1"), sample(key="new", data="d2", variant="published")) == ["new"]
