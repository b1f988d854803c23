// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loads a module. A parameter may be the address of a symbol of the kernel or of modules,
 * the first one of this name in /proc/kallsyms.
 *
 *	module-insert FILE [PARAMETER=SYMBOL]...
 */
#define _GNU_SOURCE
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static unsigned long address_of(const char *symbol)
{
	FILE *stream = fopen("/proc/kallsyms", "re");
	char line[512], name[256];
	unsigned long address;

	if (!stream)
		err(1, "/proc/kallsyms");
	while (fgets(line, sizeof(line), stream)) {
		if (sscanf(line, "%lx %*c %255s", &address, name) == 2 && !strcmp(name, symbol)) {
			fclose(stream);
			return address;
		}
	}
	errx(1, "there is no symbol %s", symbol);
}

int main(int argc, char **argv)
{
	char parameters[256] = "";
	int i, fd;

	if (argc < 2)
		errx(2, "usage: module-insert FILE [PARAMETER=SYMBOL]...");
	for (i = 2; i < argc; i++) {
		char *symbol = strchr(argv[i], '=');
		size_t used = strlen(parameters);

		if (!symbol)
			errx(2, "%s is no parameter", argv[i]);
		*symbol++ = '\0';
		snprintf(parameters + used, sizeof(parameters) - used, "%s=%#lx ", argv[i],
			 address_of(symbol));
	}
	fd = open(argv[1], O_RDONLY | O_CLOEXEC);
	if (fd < 0 || syscall(SYS_finit_module, fd, parameters, 0))
		err(1, "%s", argv[1]);
	return 0;
}
