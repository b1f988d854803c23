// SPDX-License-Identifier: GPL-2.0-only
/* Have the kernel swap to a device that bears a swap header. */
#include <err.h>
#include <sys/swap.h>

int main(int argc, char **argv)
{
	if (argc != 2)
		errx(2, "usage: swapon DEVICE");
	if (swapon(argv[1], 0))
		err(1, "%s", argv[1]);
}
