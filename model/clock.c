// SPDX-License-Identifier: GPL-2.0-only
#include <stdlib.h>

#include "clock.h"

#define PAGE_BYTES		4096ULL
/* The pages of a request lie scattered in memory, and BIO_MAX_VECS is 256. */
#define REQUEST_MOST_PAGES	256
/* At first. A power of two, as all capacities are. */
#define FIRST_CAPACITY		64

struct timed_device {
	struct device_profile profile;
	struct device_state state;
	uint64_t waited;	/* by the program */
};

/*
 * Requests are numbered as they come, and each device does them in this order.
 * Those before 'first' are done on all devices.
 */
struct model_clock {
	struct model_observer observer;
	struct model_processor processor;
	uint64_t worked;	/* by the processor */
	uint64_t first, next;
	uint64_t capacity;	/* requests that there is room for */
	uint64_t *done;		/* by request and device: when it is */
	uint64_t *requests;	/* of pages: the last that has read it */
	uint64_t *places;	/* of files: the first page on the device */
	bool failed;
	uint32_t nr_devices;
	struct timed_device devices[];
};

/* When a request is done, on each device. */
static uint64_t *done_of(const struct model_clock *clock, uint64_t request)
{
	return clock->done + (request & (clock->capacity - 1)) * clock->nr_devices;
}

/* Make room for twice as many requests. */
static bool grow(struct model_clock *clock)
{
	struct model_clock larger = *clock;

	larger.capacity *= 2;
	larger.done = calloc(larger.capacity,
			     clock->nr_devices * sizeof(*larger.done));
	if (!larger.done)
		return false;
	for (uint64_t i = clock->first; i < clock->next; i++)
		for (uint32_t j = 0; j < clock->nr_devices; j++)
			done_of(&larger, i)[j] = done_of(clock, i)[j];
	free(clock->done);
	clock->done = larger.done;
	clock->capacity = larger.capacity;
	return true;
}

static void submit(struct model_clock *clock, uint64_t place, uint64_t n)
{
	uint64_t *done;

	if (clock->next - clock->first == clock->capacity && !grow(clock)) {
		clock->failed = true;
		return;
	}
	clock->worked += clock->processor.request + n * clock->processor.page;
	done = done_of(clock, clock->next);
	for (uint32_t i = 0; i < clock->nr_devices; i++) {
		struct timed_device *device = &clock->devices[i];

		done[i] = device_request(&device->profile, &device->state,
					 clock->worked + device->waited,
					 place * PAGE_BYTES, n * PAGE_BYTES);
	}
	for (uint64_t i = place; i < place + n; i++)
		clock->requests[i] = clock->next;
	clock->next++;
}

static void read_range(void *context, uint32_t file, uint32_t start, uint32_t n)
{
	struct model_clock *clock = context;
	uint64_t place = clock->places[file] + start;

	for (; n > REQUEST_MOST_PAGES; n -= REQUEST_MOST_PAGES) {
		submit(clock, place, REQUEST_MOST_PAGES);
		place += REQUEST_MOST_PAGES;
	}
	submit(clock, place, n);
}

static void wait_for(struct model_clock *clock, uint64_t request)
{
	const uint64_t *done = done_of(clock, request);

	for (uint32_t i = 0; i < clock->nr_devices; i++) {
		struct timed_device *device = &clock->devices[i];
		uint64_t now = clock->worked + device->waited;

		if (done[i] > now)
			device->waited += done[i] - now;
	}
	clock->first = request + 1;
}

static void accessed(void *context, uint32_t file, uint32_t page,
		     enum model_access how)
{
	struct model_clock *clock = context;

	if (clock->first < clock->next) {
		uint64_t place = clock->places[file] + page;

		if (clock->requests[place] >= clock->first)
			wait_for(clock, clock->requests[place]);
	}
	clock->worked += clock->processor.access[how];
}

struct model_clock *model_clock_new(const struct device_profile *devices,
				    uint32_t nr_devices,
				    const struct model_processor *processor,
				    const uint32_t *file_pages,
				    uint32_t nr_files)
{
	struct model_clock *clock =
		calloc(1, sizeof(*clock) + nr_devices * sizeof(*clock->devices));
	uint64_t all_pages = 0;

	if (!clock)
		return NULL;
	clock->observer = (struct model_observer) { clock, read_range, accessed };
	clock->processor = *processor;
	clock->nr_devices = nr_devices;
	for (uint32_t i = 0; i < nr_devices; i++)
		clock->devices[i].profile = devices[i];
	clock->capacity = FIRST_CAPACITY;
	clock->done = calloc(FIRST_CAPACITY, nr_devices * sizeof(*clock->done));
	clock->places = calloc(nr_files, sizeof(*clock->places));
	for (uint32_t i = 0; clock->places && i < nr_files; i++) {
		clock->places[i] = all_pages;
		all_pages += file_pages[i];
	}
	clock->requests = calloc(all_pages, sizeof(*clock->requests));
	if (!clock->done || !clock->places || !clock->requests) {
		model_clock_free(clock);
		return NULL;
	}
	return clock;
}

void model_clock_free(struct model_clock *clock)
{
	free(clock->done);
	free(clock->requests);
	free(clock->places);
	free(clock);
}

const struct model_observer *
model_clock_observer(const struct model_clock *clock)
{
	return &clock->observer;
}

bool model_clock_read(const struct model_clock *clock, uint64_t *nanoseconds)
{
	for (uint32_t i = 0; i < clock->nr_devices; i++)
		nanoseconds[i] = clock->worked + clock->devices[i].waited;
	return !clock->failed;
}
