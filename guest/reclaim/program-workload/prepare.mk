# SPDX-License-Identifier: GPL-2.0-only
# What the programs of program-workload need besides packages. It is made once, on the disk.
MAKEFLAGS += --no-builtin-rules

DATABASES := /var/lib/databases

all: $(DATABASES)/sqlite $(DATABASES)/lmdb /usr/lib/no-hint.so

$(DATABASES)/%:
	python3 /src/databases.py build $*

/usr/lib/no-hint.so: no-hint.c
	gcc -O2 -shared -fPIC -o $@ $<
