# SPDX-License-Identifier: GPL-2.0-only
"""A static program that does in a guest what its first argument says."""

import json
import subprocess
from pathlib import Path
from typing import Any

from foliolab.arch import NATIVE, Architecture


def compiled(arch: Architecture, place: Path) -> str:
    """The program for ``arch``, made in ``place``."""
    source = place / "act.c"
    source.write_text(_ACT)
    binary = place / "act"
    subprocess.run([arch.compiler, "-static", "-O2", "-o", str(binary), str(source)], check=True)
    return str(binary)


_ACT = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	if (!strcmp(argv[1], "write")) {
		printf("%s\n", argv[2]);
		fprintf(stderr, "to stderr\n");
		return atoi(argv[3]);
	}
	if (!strcmp(argv[1], "count")) {
		size_t bytes = 0, more;
		char block[4096];

		while ((more = fread(block, 1, sizeof(block), stdin)))
			bytes += more;
		printf("%zu %s\n", bytes, getenv("WORD"));
		return 0;
	}
	if (!strcmp(argv[1], "append")) {
		char line[100];
		FILE *log = fopen("/data/log", "a+");

		fprintf(log, "%s\n", argv[2]);
		rewind(log);
		while (fgets(line, sizeof(line), log))
			fputs(line, stdout);
		return fclose(log) ? 1 : atoi(argv[3]);
	}
	if (!strcmp(argv[1], "noise")) {
		char block[4096];
		FILE *random = fopen("/dev/urandom", "r");
		FILE *out = fopen("/data/noise", "w");

		for (int i = 0; i < 512; i++)
			fwrite(block, fread(block, 1, sizeof(block), random), 1, out);
		return fclose(out);
	}
	if (!strcmp(argv[1], "log")) {
		FILE *log = fopen("/dev/kmsg", "w");

		fprintf(log, "%s\n", argv[2]);
		return fclose(log) ? 1 : atoi(argv[3]);
	}
	if (!strcmp(argv[1], "abort"))
		abort();
	if (!strcmp(argv[1], "sleep")) {
		puts("asleep");
		fflush(stdout);
		sleep(1000);
	}
	if (!strcmp(argv[1], "crash")) {
		FILE *trigger = fopen("/proc/sysrq-trigger", "w");

		fputs("c", trigger);
		fclose(trigger);
	}
	if (!strcmp(argv[1], "eat"))
		for (;;)
			memset(malloc(1 << 20), 1, 1 << 20);
	return 1;
}
"""


def cells(file: Path, arch: Architecture = NATIVE) -> list[dict[str, Any]]:
    """What a file of --json says of each run."""
    facts = json.loads(file.read_text())
    assert facts["arch"] == arch.name
    found: list[dict[str, Any]] = facts["cells"]
    return found
