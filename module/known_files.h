/* SPDX-License-Identifier: GPL-2.0-only */
/* What the module knows of files. Nothing here sleeps. */
#ifndef MODULE_KNOWN_FILES_H
#define MODULE_KNOWN_FILES_H

#include <linux/fs.h>

#include "mmap_readahead_window.h"

/**
 * known_file_lock - what is known of a file, to decide and to learn
 * @mapping: of the file, which somebody has open
 *
 * Return: NULL without memory. Else known_file_unlock() has to follow, and nothing may sleep
 * before.
 */
struct mmap_readahead_state *known_file_lock(const struct address_space *mapping);
void known_file_unlock(struct mmap_readahead_state *state);

/**
 * known_file_memory - how many pages of files memory can hold
 * @state: what known_file_lock() returned
 *
 * It takes a hundred instructions to tell, and changes slowly. Who misses in the same file
 * may be of another control group, which has other memory.
 *
 * Return: pages, for the task's control group.
 */
unsigned long known_file_memory(struct mmap_readahead_state *state);

/**
 * known_file_arrived - what was to be read is in the page cache
 * @mapping: of the file, which may be gone meanwhile
 * @answer: what was to be read
 */
void known_file_arrived(const struct address_space *mapping,
			const struct mmap_readahead_answer *answer);

/**
 * known_file_set_program - a file is mapped as program text
 * @file: which stays a program as long as it is open
 */
void known_file_set_program(const struct file *file);
bool known_file_is_program(const struct file *file);

/**
 * known_file_release - forget a file whose inode is about to go
 * @mapping: of the file
 */
void known_file_release(const struct address_space *mapping);

/**
 * known_file_release_program - forget a program that is about to be closed
 * @file: the open file, be it a program or not
 */
void known_file_release_program(const struct file *file);

/**
 * known_files_init - to be called first
 *
 * Return: 0 or -ENOMEM.
 */
int known_files_init(void);

/**
 * known_files_exit - free everything
 *
 * To be called last, when nobody else can be in one of these functions.
 */
void known_files_exit(void);

/**
 * known_files_count - how many files are known, programs among them
 *
 * Return: files.
 */
unsigned long known_files_count(void);

#endif /* MODULE_KNOWN_FILES_H */
