# SPDX-License-Identifier: GPL-2.0-only
"""Which of the kernel's mm selftests are run, with the options and settings of its run_vmtests.sh."""

from collections.abc import Iterable
from dataclasses import dataclass

from foliolab.arch import ARCHITECTURES
from foliolab.errors import UsageError

HUGE_PAGES = "/proc/sys/vm/nr_hugepages"


@dataclass(frozen=True)
class Test:
    """One call of a test program, in a guest of its own."""

    command: str
    seconds: int = 180
    """It may take, on a real machine; the selftests' own limit."""
    huge_mib: int = 256
    """Of huge pages, if the guest can have them; what run_vmtests.sh reserves."""
    settings: tuple[tuple[str, str], ...] = ()
    """Files of the guest, and what to write to them first."""
    nodes: int = 1
    """NUMA nodes of the guest."""
    cpus: int = 2
    libraries: tuple[str, ...] = ()
    """From Debian's packages lib...-dev."""
    arches: tuple[str, ...] = tuple(ARCHITECTURES)

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(self.command.split())

    @property
    def program(self) -> str:
        return self.argv[0]


def _one_huge_page(command: str) -> Test:
    return Test(command, huge_mib=0, settings=((HUGE_PAGES, "1"),))


def _ksm(options: str, nodes: int = 1) -> Test:
    return Test(f"ksm_tests {options}", nodes=nodes, libraries=("numa",))


_SHM_LIMITS = (("/proc/sys/kernel/shmmax", str(256 << 20)), ("/proc/sys/kernel/shmall", str(4 << 20)))
_OVERCOMMIT = (("/proc/sys/vm/overcommit_memory", "1"),)

TESTS = (
    # Protection, and what its bits in page tables mean
    Test("soft-dirty", arches=("x86_64",)),
    Test("pagemap_ioctl"),
    Test("mkdirty"),
    Test("mdwe_test"),
    Test("mseal_test"),
    Test("seal_elf"),
    Test("cow"),
    Test("madv_populate"),
    # userfaultfd
    Test("uffd-unit-tests"),
    Test("uffd-stress anon 20 16"),
    Test("uffd-stress hugetlb 128 32"),
    Test("uffd-stress hugetlb-private 128 32"),
    Test("uffd-stress shmem 20 16"),
    Test("uffd-stress shmem-private 20 16"),
    # Transparent huge pages
    Test("khugepaged", huge_mib=0, seconds=360),
    Test("khugepaged -s 2", huge_mib=0, seconds=360),
    Test("split_huge_page_test", huge_mib=0),
    Test("transhuge-stress -d 20", huge_mib=0),
    # KSM
    Test("ksm_functional_tests"),
    # Not 100 MiB: they give up after two minutes by themselves, which emulation does not get by with.
    _ksm("-H -s 20"),
    _ksm("-P -s 20"),
    _ksm("-M -p 10"),
    _ksm("-U"),
    _ksm("-Z -p 10 -z 0"),
    _ksm("-Z -p 10 -z 1"),
    _ksm("-N -m 1", nodes=2),
    _ksm("-N -m 0", nodes=2),
    # Migration, mremap and other ways to change mappings
    Test("migration", seconds=360, nodes=2, cpus=4, libraries=("numa",)),
    Test("mremap_test"),
    Test("mremap_dontunmap"),
    Test("map_fixed_noreplace"),
    Test("mrelease_test"),
    Test("droppable"),
    Test("memfd_secret", libraries=("cap",)),
    Test("mlock-random-test", libraries=("cap",)),
    Test("mlock2-tests"),
    Test("virtual_address_range", settings=_OVERCOMMIT),
    # get_user_pages()
    Test("gup_test -u"),
    Test("gup_test -a"),
    Test("gup_test -ct -F 0x1 0 19 0x1000"),
    Test("gup_longterm"),
    # hugetlbfs
    Test("hugepage-mmap"),
    Test("hugepage-shm", settings=_SHM_LIMITS),
    Test("map_hugetlb"),
    Test("hugepage-mremap"),
    Test("hugepage-vmemmap"),
    Test("hugetlb-madvise"),
    Test("hugetlb_dio"),
    _one_huge_page("hugetlb_fault_after_madv"),
    _one_huge_page("hugetlb_madv_vs_map"),
)

LEFT_OUT = {
    "map_populate": "it takes sockets, which lab kernels are built without",
    "compaction_test": "it reads its settings through a shell, which guests have not",
    "on-fault-limit": "it has to run as another user than root",
    "protection_keys, pkey_sighandler_tests": "lab kernels are built without protection keys",
    "va_high_addr_switch": "it takes page tables of five levels on x86_64, and 52 bits of address on arm64",
    "thuge-gen": "it takes 4 GiB of huge pages of 1 GiB",
    "hmm-tests, test_hmm.sh, test_vmalloc.sh": "they take kernel modules, which lab kernels have not",
    "hugetlb-read-hwpoison, hugetlb-soft-offline": "they destroy memory, and run_vmtests.sh leaves them out as well",
    "charge_reserved_hugetlb.sh, hugetlb_reparenting_test.sh, write_to_hugetlbfs": "scripts, and what they call",
}
"""Programs of the directory that are not run, and why."""


def chosen(names: Iterable[str], arch: str) -> list[Test]:
    """The tests of these programs, or commands, on an architecture; all of them without names."""
    tests = [test for test in TESTS if arch in test.arches]
    names = list(names)
    for name in names:
        if not any(name in (test.program, test.command) for test in tests):
            known = ", ".join(dict.fromkeys(test.program for test in tests))
            raise UsageError(f"There is no selftest '{name}' for {arch}; known: {known}.")
    return [test for test in tests if not names or test.program in names or test.command in names]
