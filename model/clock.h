/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The time that a program takes, on several devices at once.
 *
 * What is read depends on no time, so one simulation serves all devices. Each
 * read is submitted at the program's present time. An access waits only for the
 * request that holds its page; what is read ahead goes on meanwhile.
 *
 * All times are in nanoseconds.
 */
#ifndef MODEL_CLOCK_H
#define MODEL_CLOCK_H

#include "../device/device_time.h"
#include "model.h"

/* How long the processor works. */
struct model_processor {
	uint64_t access[3];	/* by enum model_access, without waiting */
	uint64_t page;		/* that is read */
	uint64_t request;
};

struct model_clock;

/* NULL for lack of memory. The files are those of the model. */
struct model_clock *model_clock_new(const struct device_profile *devices,
				    uint32_t nr_devices,
				    const struct model_processor *processor,
				    const uint32_t *file_pages,
				    uint32_t nr_files);
void model_clock_free(struct model_clock *clock);

/* For model_observe() of one model. */
const struct model_observer *
model_clock_observer(const struct model_clock *clock);

/* The present time on each device. False if memory has run out on the way. */
bool model_clock_read(const struct model_clock *clock, uint64_t *nanoseconds);

#endif /* MODEL_CLOCK_H */
