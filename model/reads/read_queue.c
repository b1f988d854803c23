// SPDX-License-Identifier: GPL-2.0-only
#define _GNU_SOURCE
#include <errno.h>
#include <linux/io_uring.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "read_queue.h"

#define NR_THREADS	32

/* The queues that we share with the kernel. */
struct uring {
	int fd;
	void *mapped;		/* both queues' heads and tails */
	size_t mapped_size;
	struct io_uring_sqe *entries;
	size_t entries_size;
	uint32_t *tail, *mask, *order;
	uint32_t *ended_head, *ended_tail, *ended_mask;
	struct io_uring_cqe *ended;
	uint32_t added;		/* and not begun yet */
};

/* Reads in the order in which they came. */
struct list {
	struct queued_read *first, *last;
};

struct threads {
	pthread_t threads[NR_THREADS];
	uint32_t nr_threads;
	pthread_mutex_t lock;
	pthread_cond_t has_begun, has_ended;
	struct list added;	/* without the lock: the caller's own */
	struct list begun, ended;
	bool stop;
};

struct read_queue {
	bool has_threads;
	struct uring ring;
	struct threads threads;
};

static void append(struct list *list, struct queued_read *read)
{
	read->next = NULL;
	if (list->first)
		list->last->next = read;
	else
		list->first = read;
	list->last = read;
}

static struct queued_read *take(struct list *list)
{
	struct queued_read *read = list->first;

	if (read)
		list->first = read->next;
	return read;
}

static void ring_close(struct uring *ring)
{
	if (ring->entries)
		munmap(ring->entries, ring->entries_size);
	if (ring->mapped)
		munmap(ring->mapped, ring->mapped_size);
	close(ring->fd);
}

static void *ring_map(const struct uring *ring, size_t size, off_t what)
{
	void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_POPULATE, ring->fd, what);

	return mapped == MAP_FAILED ? NULL : mapped;
}

static void ring_find(struct uring *ring, const struct io_uring_params *params)
{
	char *place = ring->mapped;

	ring->tail = (uint32_t *)(place + params->sq_off.tail);
	ring->mask = (uint32_t *)(place + params->sq_off.ring_mask);
	ring->order = (uint32_t *)(place + params->sq_off.array);
	ring->ended_head = (uint32_t *)(place + params->cq_off.head);
	ring->ended_tail = (uint32_t *)(place + params->cq_off.tail);
	ring->ended_mask = (uint32_t *)(place + params->cq_off.ring_mask);
	ring->ended = (struct io_uring_cqe *)(place + params->cq_off.cqes);
}

/* False if the kernel has no io_uring for us. */
static bool ring_open(struct uring *ring, uint32_t most)
{
	struct io_uring_params params = {};
	size_t orders, ended;

	ring->fd = syscall(SYS_io_uring_setup, most, &params);
	if (ring->fd < 0)
		return false;
	/* Before Linux 5.4 each queue was mapped by itself. */
	if (params.features & IORING_FEAT_SINGLE_MMAP) {
		orders = params.sq_off.array +
			 params.sq_entries * sizeof(*ring->order);
		ended = params.cq_off.cqes +
			params.cq_entries * sizeof(*ring->ended);
		ring->mapped_size = orders > ended ? orders : ended;
		ring->entries_size = params.sq_entries * sizeof(*ring->entries);
		ring->mapped = ring_map(ring, ring->mapped_size,
					IORING_OFF_SQ_RING);
		ring->entries = ring_map(ring, ring->entries_size,
					 IORING_OFF_SQES);
	}
	if (!ring->mapped || !ring->entries) {
		ring_close(ring);
		return false;
	}
	ring_find(ring, &params);
	return true;
}

static void ring_add(struct uring *ring, struct queued_read *read)
{
	uint32_t tail = *ring->tail, place = tail & *ring->mask;

	ring->entries[place] = (struct io_uring_sqe) {
		.opcode = IORING_OP_READV,
		.fd = read->file,
		.off = read->offset,
		.addr = (uintptr_t)read->pages,
		.len = read->nr_pages,
		.user_data = (uintptr_t)read,
	};
	ring->order[place] = place;
	__atomic_store_n(ring->tail, tail + 1, __ATOMIC_RELEASE);
	ring->added++;
}

static bool ring_begin(struct uring *ring, bool wait)
{
	unsigned int flags = wait ? IORING_ENTER_GETEVENTS : 0;
	long begun;

	while (ring->added || wait) {
		begun = syscall(SYS_io_uring_enter, ring->fd, ring->added, wait,
				flags, NULL, 0);
		if (begun >= 0) {
			ring->added -= begun;
			wait = wait && ring->added;
		} else if (errno == EINTR) {
			wait = false;
		} else if (errno == EAGAIN || errno == EBUSY) {
			sched_yield();
		} else {
			return false;
		}
	}
	return true;
}

static struct queued_read *ring_ended(struct uring *ring)
{
	uint32_t head = *ring->ended_head;
	struct io_uring_cqe *ended = &ring->ended[head & *ring->ended_mask];
	struct queued_read *read;

	if (head == __atomic_load_n(ring->ended_tail, __ATOMIC_ACQUIRE))
		return NULL;
	read = (struct queued_read *)(uintptr_t)ended->user_data;
	read->result = ended->res;
	__atomic_store_n(ring->ended_head, head + 1, __ATOMIC_RELEASE);
	return read;
}

static void *work(void *argument)
{
	struct threads *threads = argument;
	struct queued_read *read;

	pthread_mutex_lock(&threads->lock);
	while (!threads->stop) {
		read = take(&threads->begun);
		if (!read) {
			pthread_cond_wait(&threads->has_begun, &threads->lock);
			continue;
		}
		pthread_mutex_unlock(&threads->lock);
		read->result = preadv(read->file, read->pages, read->nr_pages,
				      read->offset);
		if (read->result < 0)
			read->result = -errno;
		pthread_mutex_lock(&threads->lock);
		append(&threads->ended, read);
		pthread_cond_signal(&threads->has_ended);
	}
	pthread_mutex_unlock(&threads->lock);
	return NULL;
}

static void threads_stop(struct threads *threads)
{
	pthread_mutex_lock(&threads->lock);
	threads->stop = true;
	pthread_cond_broadcast(&threads->has_begun);
	pthread_mutex_unlock(&threads->lock);
	while (threads->nr_threads)
		pthread_join(threads->threads[--threads->nr_threads], NULL);
}

static bool threads_start(struct threads *threads)
{
	int error;

	pthread_mutex_init(&threads->lock, NULL);
	pthread_cond_init(&threads->has_begun, NULL);
	pthread_cond_init(&threads->has_ended, NULL);
	while (threads->nr_threads < NR_THREADS) {
		error = pthread_create(&threads->threads[threads->nr_threads],
				       NULL, work, threads);
		if (error) {
			threads_stop(threads);
			errno = error;
			return false;
		}
		threads->nr_threads++;
	}
	return true;
}

static void threads_begin(struct threads *threads, bool wait)
{
	struct queued_read *read;

	pthread_mutex_lock(&threads->lock);
	while ((read = take(&threads->added))) {
		append(&threads->begun, read);
		pthread_cond_signal(&threads->has_begun);
	}
	while (wait && !threads->ended.first)
		pthread_cond_wait(&threads->has_ended, &threads->lock);
	pthread_mutex_unlock(&threads->lock);
}

static struct queued_read *threads_ended(struct threads *threads)
{
	struct queued_read *read;

	pthread_mutex_lock(&threads->lock);
	read = take(&threads->ended);
	pthread_mutex_unlock(&threads->lock);
	return read;
}

struct read_queue *read_queue_new(uint32_t most, bool threads)
{
	struct read_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->has_threads = threads || !ring_open(&queue->ring, most);
	if (queue->has_threads && !threads_start(&queue->threads)) {
		free(queue);
		return NULL;
	}
	return queue;
}

void read_queue_free(struct read_queue *queue)
{
	if (queue->has_threads)
		threads_stop(&queue->threads);
	else
		ring_close(&queue->ring);
	free(queue);
}

bool read_queue_has_threads(const struct read_queue *queue)
{
	return queue->has_threads;
}

void read_queue_add(struct read_queue *queue, struct queued_read *read)
{
	if (queue->has_threads)
		append(&queue->threads.added, read);
	else
		ring_add(&queue->ring, read);
}

bool read_queue_begin(struct read_queue *queue, bool wait)
{
	if (!queue->has_threads)
		return ring_begin(&queue->ring, wait);
	threads_begin(&queue->threads, wait);
	return true;
}

struct queued_read *read_queue_ended(struct read_queue *queue)
{
	return queue->has_threads ? threads_ended(&queue->threads) :
				    ring_ended(&queue->ring);
}
