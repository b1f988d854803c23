# SPDX-License-Identifier: GPL-2.0-only
from foliolab.campaign.program import boots
from foliolab.experiment.variants import choose, load_variants


def test_variants_share_a_boot_where_switches_can_be_put_back() -> None:
    chosen = choose(["off", "unpatched", "published", "adaptive"], load_variants())
    planned = [[str(cell) for cell in cells] for cells in boots(chosen, [128, 4096])]
    assert planned == [
        [f"{variant}, read_ahead_kb {limit}" for variant in variants for limit in (128, 4096)]
        for variants in (["off", "published"], ["unpatched"], ["adaptive"])
    ]


def test_one_cell() -> None:
    ((cell,),) = boots(choose(["adaptive"], load_variants()), [None])
    assert (str(cell), cell.read_ahead_kb) == ("adaptive", None)
