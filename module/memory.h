/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef MODULE_MEMORY_H
#define MODULE_MEMORY_H

/**
 * file_memory_pages - how many pages of files memory can hold
 *
 * What files have and what is free, in the machine or in the task's control group, whichever
 * is less. What anonymous pages could leave to files is not counted.
 *
 * Return: pages, at least 1.
 */
unsigned long file_memory_pages(void);

/**
 * current_group - the task's control group, whose memory that is
 *
 * Return: the group, only to be compared.
 */
const void *current_group(void);

#endif /* MODULE_MEMORY_H */
