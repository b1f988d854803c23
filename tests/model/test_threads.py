# SPDX-License-Identifier: GPL-2.0-only
"""A second thread that asks for pages while another one is still reading them, which the model itself cannot play."""

from pathlib import Path

from foliolab import process
from foliolab.errors import BuildError
from foliolab.model.compiled import INCLUDES, WINDOW

PROGRAM = """
#include <stdio.h>
#include <string.h>

#include "mmap_readahead_window.h"

static enum mmap_readahead_page pages[4096];

static enum mmap_readahead_page look(const void *cache, unsigned long index)
{
	return pages[index];
}

static unsigned long next_miss(const void *cache, unsigned long index, unsigned long most)
{
	return index;
}

static struct mmap_readahead_state state;

static struct mmap_readahead_answer ask(unsigned long index)
{
	struct mmap_readahead_miss miss = {
		.index = index, .page = pages[index], .file_pages = 4096, .cached_pages = 1, .memory_pages = 4096,
		.max_pages = 32, .request_pages = 32, .block_shift = 4, .look = look, .next_miss = next_miss,
	};
	struct mmap_readahead_answer answer;

	if (!mmap_readahead_settled(&state, &miss, &answer))
		mmap_readahead_adapt(&state, &miss, &answer);
	return answer;
}

int main(void)
{
	struct mmap_readahead_state before;
	struct mmap_readahead_answer first, other, later;
	unsigned long i;

	for (i = 0; i < 4096; i++)
		pages[i] = MMAP_READAHEAD_EVICTED;
	first = ask(1000);
	before = state;
	/* The other thread is faster than the pages come. */
	other = ask(first.start + first.size - 1);
	printf("%u %d ", other.size, memcmp(&before, &state, sizeof(state)));
	mmap_readahead_submitted(&state, &first);
	/* Nothing is there, although it was read: it is lost. */
	later = ask(first.start + first.size - 1);
	printf("%u", later.size);
}
"""


def test_a_window_that_another_thread_reads_is_not_read_twice_though_it_was_evicted_before(tmp_path: Path) -> None:
    source, program = tmp_path / "threads.c", tmp_path / "threads"
    source.write_text(PROGRAM)
    process.run([process.tool("cc"), *INCLUDES, "-o", str(program), str(source), str(WINDOW)], BuildError)
    size, learnt, lost = map(int, process.run([str(program)], BuildError).split())
    assert (size, learnt) == (1, 0)
    assert lost > 1
