/* SPDX-License-Identifier: GPL-2.0-only */
/* What the module knows of open files. Nothing here sleeps. */
#ifndef MODULE_KNOWN_FILES_H
#define MODULE_KNOWN_FILES_H

#include <linux/fs.h>
#include <linux/mmap_readahead_window.h>

struct known_file;

/**
 * known_file_trylock - what is known of a file, to decide and to learn
 * @file: an open file
 * @miss: what memory can hold, and what other files have taught, is added
 * @known: set; for known_file_unlock()
 *
 * Until known_file_unlock(), the caller is not to sleep.
 *
 * Return: NULL if another task decides just now, there is no memory, or it is a program.
 */
struct mmap_readahead_state *known_file_trylock(struct file *file,
						struct mmap_readahead_miss *miss,
						struct known_file **known);
void known_file_unlock(struct known_file *known);

/**
 * known_file_arrived - what was to be read is in the page cache
 * @file: the file, which may have been closed meanwhile
 * @answer: what was to be read
 */
void known_file_arrived(const struct file *file, const struct mmap_readahead_answer *answer);

/**
 * known_file_set_program - a file is mapped as program text
 * @file: which stays a program as long as it is open
 */
void known_file_set_program(struct file *file);
bool known_file_is_program(struct file *file);

/**
 * known_file_release - forget a file that is about to be closed
 * @file: the file
 */
void known_file_release(struct file *file);

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
