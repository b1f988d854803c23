// SPDX-License-Identifier: GPL-2.0-only
/* The policy of the kernel patches: its own name is that of the whole module. */
#include "mmap_readahead_window.c"
