/* SPDX-License-Identifier: GPL-2.0-only */
/* Whether the kernel that runs has the functions and structures that the module knows. */
#ifndef MODULE_TYPES_H
#define MODULE_TYPES_H

#include <linux/types.h>

#define MAX_ARGUMENTS	2

/**
 * struct known_function - what a function takes
 * @name: of the function
 * @arguments: to what structures its first arguments point, as far as the module uses them
 */
struct known_function {
	const char *name;
	const char *arguments[MAX_ARGUMENTS];
};

/**
 * check_types - compare functions, and structures that the module reads, with the kernel's BTF
 * @functions: a name that is NULL ends them
 *
 * To be called before anything is followed; it sleeps. What differs is said in the log.
 *
 * Return: 0 if all are as expected, or if the kernel tells no types; else a negative error.
 */
int check_types(const struct known_function *functions);

#endif /* MODULE_TYPES_H */
