/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Several who have opened one file: each has page tables of its own, and a state of
 * the policy if that has one for an open file. The page cache is that of all, and so
 * is what the policy knows of the file.
 */
#ifndef MODEL_OPENERS_H
#define MODEL_OPENERS_H

#include "policy.h"

#define MOST_OPENERS	64	/* bits of file->mappers */

struct openers {
	struct file *file;
	const struct policy *policy;
	void *own;	/* state of who has the file to itself before and after */
	char *states;
};

/*
 * So many may open a file that nobody maps. False for lack of memory; free it in
 * any case.
 */
bool openers_init(struct openers *openers, struct file *file,
		  const struct policy *policy, uint32_t nr);
void openers_free(struct openers *openers);

/* One of them accesses the file now, and opens it if it has not. */
void openers_turn(struct openers *openers, uint32_t opener);

/* One closes the file. It may open it again, as somebody new. */
void openers_close(struct openers *openers, uint32_t opener);

#endif /* MODEL_OPENERS_H */
