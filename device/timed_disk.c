// SPDX-License-Identifier: GPL-2.0-only
/*
 * A disk that takes time: it reads and writes another disk, and completes each
 * request when a disk of the given profile would have.
 *
 * It is for guests in which a clock of instructions stands still while the host
 * works, and jumps to the next timer while the guest waits. There, a request is
 * done at the time that the profile says, to the nanosecond, however long the
 * host takes for it.
 *
 * Two parameters below /sys/module/timed_disk/parameters are to be written, in
 * this order:
 *   profile	latency in microseconds, 10^6 bytes a second, requests a second
 *		(0: no limit), queue depth (1 to 64), with commas between them
 *   add	the name of a disk such as vda; /dev/timed_vda appears
 * Disks have the profile of the time when they are added, and stay.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/version.h>

#include "device_time.h"

#define TIMED_QUEUE	128	/* requests that wait in the disk at most */
#define TIMED_SEGMENTS	256	/* so requests of single pages have 1 MiB */
#define TIMED_LOOKS	10000	/* at what the lower disk still does, in a row */
#define TIMED_PAUSE	10000	/* ns, before the next ones */

struct timed_disk {
	struct device_profile profile;
	spinlock_t lock;		/* of the next two */
	struct device_state state;
	u64 late;			/* ns that the last one done was, at most */
	struct file *backing;
	struct block_device *lower;
	struct blk_mq_tag_set tags;
	struct gendisk *disk;
	struct bio_set clones;
};

struct timed_request {
	struct timed_disk *timed;
	struct hrtimer timer;
	atomic_t reading;		/* bios that the lower disk still has */
	blk_status_t status;
	u64 done;			/* ns of CLOCK_MONOTONIC */
};

static struct device_profile profile = {
	.bytes_per_second = DEVICE_MOST_SPEED,
	.depth = DEVICE_MOST_DEPTH,
};

static DEFINE_MUTEX(parameters);

/*
 * The lower disk has everything in memory of the host. It needs some of the
 * host's time, and none of the guest's: were the guest idle, its clock would
 * jump. So wait here, though not for ever, as what others have to do for the
 * lower disk may wait for us. The next request makes up for the instructions of
 * that: a program that waits for one after the other loses none.
 */
static enum hrtimer_restart timed_done(struct hrtimer *timer)
{
	struct timed_request *work =
		container_of(timer, struct timed_request, timer);
	struct timed_disk *timed = work->timed;

	/* An emulator leaves the processor here, and does something else. */
	for (int i = 0; atomic_read_acquire(&work->reading); i++) {
		if (i == TIMED_LOOKS) {
			hrtimer_forward_now(timer, TIMED_PAUSE);
			return HRTIMER_RESTART;
		}
		cpu_relax();
	}
	spin_lock_bh(&timed->lock);
	timed->late = ktime_get_ns() - work->done;
	spin_unlock_bh(&timed->lock);
	blk_mq_end_request(blk_mq_rq_from_pdu(work), work->status);
	return HRTIMER_NORESTART;
}

static void timed_lower_done(struct bio *bio)
{
	struct timed_request *work = bio->bi_private;

	if (bio->bi_status)
		WRITE_ONCE(work->status, bio->bi_status);
	bio_put(bio);
	atomic_dec_return_release(&work->reading);
}

/* When the request is done that comes now. */
static u64 timed_due(struct timed_disk *timed, struct request *request)
{
	u64 now = ktime_get_ns(), due, made_up;

	spin_lock_bh(&timed->lock);
	due = device_request(&timed->profile, &timed->state, now,
			     blk_rq_pos(request) << SECTOR_SHIFT,
			     blk_rq_bytes(request));
	made_up = min(timed->late, (due - now) / 2);
	timed->late -= made_up;
	spin_unlock_bh(&timed->lock);
	return due - made_up;
}

/*
 * Have the lower disk do it at once. What the task that is here keeps back, for
 * itself or to have it merged, would come to it only later.
 */
static void timed_submit(struct timed_disk *timed, struct request *request)
{
	struct timed_request *work = blk_mq_rq_to_pdu(request);
	struct bio_list *list = current->bio_list;
	struct blk_plug *plug = current->plug;
	struct bio *bio;

	/* Who is preempted with a time stamp has a plug: the scheduler writes to it. */
	blk_plug_invalidate_ts();
	current->bio_list = NULL;
	current->plug = NULL;
	__rq_for_each_bio(bio, request) {
		struct bio *clone = bio_alloc_clone(timed->lower, bio, GFP_NOIO,
						    &timed->clones);

		clone->bi_private = work;
		clone->bi_end_io = timed_lower_done;
		atomic_inc(&work->reading);
		submit_bio_noacct(clone);
	}
	current->bio_list = list;
	current->plug = plug;
}

static void timed_start(struct timed_request *work)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&work->timer, timed_done, CLOCK_MONOTONIC,
		      HRTIMER_MODE_ABS_SOFT);
#else
	hrtimer_init(&work->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
	work->timer.function = timed_done;
#endif
	hrtimer_start(&work->timer, ns_to_ktime(work->done),
		      HRTIMER_MODE_ABS_SOFT);
}

static blk_status_t timed_queue(struct blk_mq_hw_ctx *hctx,
				const struct blk_mq_queue_data *data)
{
	struct request *request = data->rq;
	struct timed_request *work = blk_mq_rq_to_pdu(request);
	struct timed_disk *timed = hctx->queue->queuedata;

	blk_mq_start_request(request);
	work->timed = timed;
	work->status = BLK_STS_OK;
	work->done = timed_due(timed, request);
	atomic_set(&work->reading, 0);
	timed_submit(timed, request);
	timed_start(work);
	return BLK_STS_OK;
}

static const struct blk_mq_ops timed_ops = {
	.queue_rq = timed_queue,
};

static const struct block_device_operations timed_fops = {
	.owner = THIS_MODULE,
};

/* Until the kernel has found a good clock, its timers keep to its ticks. */
static int timed_wait_for_clock(void)
{
	while (hrtimer_resolution > 1)
		if (msleep_interruptible(10))
			return -EINTR;
	return 0;
}

static int timed_open(struct timed_disk *timed, const char *name)
{
	char *path = kasprintf(GFP_KERNEL, "/dev/%s", name);

	if (!path)
		return -ENOMEM;
	timed->backing = bdev_file_open_by_path(path, BLK_OPEN_READ |
						BLK_OPEN_WRITE, timed, NULL);
	kfree(path);
	if (IS_ERR(timed->backing))
		return PTR_ERR(timed->backing);
	timed->lower = file_bdev(timed->backing);
	return 0;
}

static int timed_make_disk(struct timed_disk *timed, const char *name)
{
	struct queue_limits limits = {
		.logical_block_size = bdev_logical_block_size(timed->lower),
		.physical_block_size = bdev_physical_block_size(timed->lower),
		.max_hw_sectors = TIMED_SEGMENTS * PAGE_SIZE >> SECTOR_SHIFT,
		.max_segments = TIMED_SEGMENTS,
		.max_segment_size = UINT_MAX,
		.features = timed->profile.depth == 1 ? BLK_FEAT_ROTATIONAL : 0,
	};
	struct gendisk *disk;

	disk = blk_mq_alloc_disk(&timed->tags, &limits, timed);
	if (IS_ERR(disk))
		return PTR_ERR(disk);
	snprintf(disk->disk_name, sizeof(disk->disk_name), "timed_%s", name);
	disk->fops = &timed_fops;
	set_capacity(disk, bdev_nr_sectors(timed->lower));
	timed->disk = disk;
	return add_disk(disk);
}

/* What fails leaves its parts behind: a guest that has no disk has no use. */
static int timed_add(const char *name)
{
	struct timed_disk *timed = kzalloc(sizeof(*timed), GFP_KERNEL);
	int error;

	if (!timed)
		return -ENOMEM;
	timed->profile = profile;
	spin_lock_init(&timed->lock);
	timed->tags.ops = &timed_ops;
	timed->tags.nr_hw_queues = 1;
	timed->tags.queue_depth = TIMED_QUEUE;
	timed->tags.numa_node = NUMA_NO_NODE;
	timed->tags.cmd_size = sizeof(struct timed_request);
	timed->tags.flags = BLK_MQ_F_BLOCKING;
	error = timed_wait_for_clock();
	if (!error)
		error = timed_open(timed, name);
	if (!error)
		error = bioset_init(&timed->clones, TIMED_QUEUE, 0, 0);
	if (!error)
		error = blk_mq_alloc_tag_set(&timed->tags);
	if (!error)
		error = timed_make_disk(timed, name);
	return error;
}

static int timed_set_profile(const char *text, const struct kernel_param *kp)
{
	unsigned int latency, megabytes, requests, depth;
	char end = '\n';

	if (sscanf(text, "%u,%u,%u,%u%c", &latency, &megabytes, &requests,
		   &depth, &end) < 4 || end != '\n')
		return -EINVAL;
	if (!megabytes || megabytes > DEVICE_MOST_SPEED / 1000000 || !depth ||
	    depth > DEVICE_MOST_DEPTH)
		return -EINVAL;
	mutex_lock(&parameters);
	profile.latency = (u64)latency * NSEC_PER_USEC;
	profile.bytes_per_second = (u64)megabytes * 1000000;
	profile.requests_per_second = requests;
	profile.depth = depth;
	mutex_unlock(&parameters);
	return 0;
}

static int timed_set_add(const char *text, const struct kernel_param *kp)
{
	char name[16];
	int error;

	if (sscanf(text, "%15s", name) != 1)
		return -EINVAL;
	mutex_lock(&parameters);
	error = timed_add(name);
	mutex_unlock(&parameters);
	return error;
}

static const struct kernel_param_ops timed_profile_ops = {
	.set = timed_set_profile,
};

static const struct kernel_param_ops timed_add_ops = {
	.set = timed_set_add,
};

module_param_cb(profile, &timed_profile_ops, NULL, 0200);
MODULE_PARM_DESC(profile, "latency (us), MB/s, requests/s, queue depth");
module_param_cb(add, &timed_add_ops, NULL, 0200);
MODULE_PARM_DESC(add, "name of a disk below /dev that is to take time");

MODULE_DESCRIPTION("A disk that takes time");
MODULE_LICENSE("GPL");
