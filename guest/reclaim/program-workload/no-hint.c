// SPDX-License-Identifier: GPL-2.0-only
/*
 * A library that is loaded before a program, and takes its hints to mapped
 * memory for done: fio 3.33 tells the kernel of a mapping that is not read at
 * random that it is read sequentially, whatever its option fadvise_hint says.
 * Then the kernel takes no access for recent use.
 */
#include <stddef.h>

int posix_madvise(void *address, size_t size, int advice)
{
	(void)address;
	(void)size;
	(void)advice;
	return 0;
}
