/* One interface to both kinds of disk, and the requests that are done but not taken. */
#include <stdlib.h>

#include "model.h"

struct disk {
	struct hdd *hdd; /* one of these two */
	struct ssd *ssd;
	struct done done;
	unsigned outstanding;
	uint64_t permille;
	uint64_t base, own_base; /* the same moment on the caller's clock and on the disk's own */
};

struct disk *disk_new(const struct disk_spec *spec)
{
	struct disk *disk = calloc(1, sizeof *disk);

	if (!disk)
		return NULL;
	disk->permille = 1000;
	if (spec->rotating)
		disk->hdd = hdd_new(spec, &disk->done);
	else
		disk->ssd = ssd_new(spec, &disk->done);
	if (!disk->hdd && !disk->ssd) {
		free(disk);
		return NULL;
	}
	return disk;
}

void disk_free(struct disk *disk)
{
	if (disk->hdd)
		hdd_free(disk->hdd);
	if (disk->ssd)
		ssd_free(disk->ssd);
	free(disk);
}

/* A slow disk is an ordinary one whose own clock runs slowly. */
static uint64_t to_own(const struct disk *disk, uint64_t time)
{
	uint64_t elapsed = time - disk->base;

	return disk->own_base + (uint64_t)((unsigned __int128)elapsed * 1000 / disk->permille);
}

static uint64_t from_own(const struct disk *disk, uint64_t own)
{
	unsigned __int128 elapsed;

	if (own <= disk->own_base)
		return disk->base;
	elapsed = (unsigned __int128)(own - disk->own_base) * disk->permille;
	return disk->base + (uint64_t)((elapsed + 999) / 1000);
}

void disk_slow_down(struct disk *disk, uint64_t permille, uint64_t now)
{
	disk->own_base = to_own(disk, now);
	disk->base = now;
	disk->permille = permille;
}

bool disk_submit(struct disk *disk, uint64_t id, enum disk_op op, uint64_t offset, uint64_t bytes,
                 uint64_t now)
{
	uint64_t own = to_own(disk, now);
	struct request request = {id, op, offset, offset + bytes, own};

	if (disk->outstanding == DISK_MAX_REQUESTS)
		return false;
	disk->outstanding++;
	if (disk->ssd) {
		ssd_submit(disk->ssd, &request);
		return true;
	}
	/* What was decided before now was decided without this request. */
	hdd_advance(disk->hdd, own);
	hdd_submit(disk->hdd, &request);
	return true;
}

void done_add(struct done *done, uint64_t id, uint64_t time)
{
	done->item[done->count++] = (struct disk_completion){id, time};
}

static unsigned earliest(const struct done *done)
{
	unsigned best = 0;

	for (unsigned i = 1; i < done->count; i++)
		if (done->item[i].time < done->item[best].time)
			best = i;
	return best;
}

bool disk_take(struct disk *disk, uint64_t now, struct disk_completion *taken)
{
	struct done *done = &disk->done;
	uint64_t own = to_own(disk, now);
	unsigned best;

	if (disk->hdd)
		hdd_advance(disk->hdd, own);
	best = earliest(done);
	if (!done->count || done->item[best].time > own)
		return false;
	*taken = (struct disk_completion){done->item[best].id, from_own(disk, done->item[best].time)};
	done->item[best] = done->item[--done->count];
	disk->outstanding--;
	return true;
}

uint64_t disk_wake(const struct disk *disk)
{
	uint64_t own = disk->hdd ? hdd_wake(disk->hdd) : DISK_NEVER;

	if (disk->done.count) {
		uint64_t time = disk->done.item[earliest(&disk->done)].time;
		if (time < own)
			own = time;
	}
	return own == DISK_NEVER ? DISK_NEVER : from_own(disk, own);
}
