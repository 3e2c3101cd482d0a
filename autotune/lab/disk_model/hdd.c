/* A rotating disk: an arm, a queue that it reorders, and a volatile write cache. */
#include <stdlib.h>
#include <string.h>

#include "arm.h"
#include "extents.h"

#define INTERFACE_RATE 500000000ULL /* bytes/s to and from the buffer and the cache */
#define COMMAND_NS 50000            /* what the electronics take */
#define DESTAGE_BYTES (512 * 1024)  /* longest write before reads are looked at again */
#define AGE_WEIGHT 32               /* waiting this many ns outweighs 1 ns of positioning */

struct hdd {
	struct disk_spec spec;
	struct done *done;
	struct arm arm;
	struct request waiting[DISK_MAX_REQUESTS]; /* in order of arrival */
	unsigned count;
	struct extents dirty;   /* in the write cache, not on its way to the platter */
	uint64_t destaging;     /* bytes on their way */
	bool blocked;           /* a write waits for room, or a flush for everything */
	bool destaged_last;
	struct request current; /* whom the arm works for, unless destaging */
};

struct hdd *hdd_new(const struct disk_spec *spec, struct done *done)
{
	struct hdd *hdd = calloc(1, sizeof *hdd);

	if (!hdd)
		return NULL;
	hdd->spec = *spec;
	hdd->done = done;
	arm_init(&hdd->arm, &hdd->spec);
	if (!extents_init(&hdd->dirty, spec->cache)) {
		free(hdd);
		return NULL;
	}
	return hdd;
}

void hdd_free(struct hdd *hdd)
{
	free(hdd->dirty.item);
	free(hdd);
}

static void answer(struct hdd *hdd, const struct request *request, uint64_t now)
{
	uint64_t moved = request->end - request->start;

	done_add(hdd->done, request->id, now + COMMAND_NS + transfer_ns(moved, INTERFACE_RATE));
}

/* Whether the request is answered without the arm. */
static bool answerable(struct hdd *hdd, const struct request *request, bool first, uint64_t now)
{
	uint64_t bytes = request->end - request->start;
	uint64_t held = hdd->dirty.bytes + hdd->destaging;

	switch (request->op) {
	case DISK_READ:
		return extents_hold(&hdd->dirty, request->start, request->end) ||
		       arm_buffered(&hdd->arm, request->start, request->end, now);
	case DISK_WRITE:
		if (!hdd->spec.cache || (held && held + bytes > hdd->spec.cache))
			return false;
		extents_add(&hdd->dirty, request->start, request->end);
		return true;
	case DISK_FLUSH:
		return first && !hdd->arm.busy && !held;
	}
	return false;
}

/* Answers what it can. As on SATA, a flush lets nothing pass that came after it. */
static void admit(struct hdd *hdd, uint64_t now)
{
	unsigned kept = 0, seen = 0;
	bool flush = false;

	hdd->blocked = false;
	while (seen < hdd->count && kept < hdd->spec.queue && !flush) {
		struct request request = hdd->waiting[seen++];

		if (answerable(hdd, &request, kept == 0, now)) {
			answer(hdd, &request, now);
			continue;
		}
		flush = request.op == DISK_FLUSH;
		if (flush || (request.op == DISK_WRITE && hdd->spec.cache))
			hdd->blocked = true;
		hdd->waiting[kept++] = request;
	}
	memmove(hdd->waiting + kept, hdd->waiting + seen,
	        (hdd->count - seen) * sizeof *hdd->waiting);
	hdd->count -= seen - kept;
}

/* The waiting request that the head reaches first, older ones favoured; -1 if none needs the arm. */
static int nearest(const struct hdd *hdd, uint64_t now)
{
	int64_t best_cost = INT64_MAX;
	int best = -1;

	for (unsigned i = 0; i < hdd->count && i < hdd->spec.queue; i++) {
		const struct request *request = &hdd->waiting[i];
		int64_t cost;

		if (request->op == DISK_FLUSH)
			break;
		if (request->op == DISK_WRITE && hdd->spec.cache)
			continue;
		cost = arm_positioning(&hdd->arm, request->start, now) -
		       (int64_t)(now - request->arrival) / AGE_WEIGHT;
		if (cost < best_cost) {
			best_cost = cost;
			best = (int)i;
		}
	}
	return best;
}

static void serve(struct hdd *hdd, unsigned chosen, uint64_t now)
{
	hdd->current = hdd->waiting[chosen];
	memmove(hdd->waiting + chosen, hdd->waiting + chosen + 1,
	        (--hdd->count - chosen) * sizeof *hdd->waiting);
	if (hdd->current.op == DISK_READ)
		arm_read(&hdd->arm, hdd->current.start, hdd->current.end, now);
	else
		arm_write(&hdd->arm, hdd->current.start, hdd->current.end, now);
	hdd->destaged_last = false;
}

/* In one sweep over the disk, and over again. */
static void destage(struct hdd *hdd, uint64_t now)
{
	struct extent extent = extents_take(&hdd->dirty, hdd->arm.head, DESTAGE_BYTES);

	hdd->destaging = extent.end - extent.start;
	arm_write(&hdd->arm, extent.start, extent.end, now);
	hdd->destaged_last = true;
}

/* Gives the idle arm work. Reads come first; when something waits for the cache, in turn. */
static void start(struct hdd *hdd, uint64_t now)
{
	int chosen;

	admit(hdd, now);
	chosen = nearest(hdd, now);
	if (hdd->dirty.count && (chosen < 0 || (hdd->blocked && !hdd->destaged_last)))
		destage(hdd, now);
	else if (chosen >= 0)
		serve(hdd, (unsigned)chosen, now);
}

static void finish(struct hdd *hdd)
{
	arm_finish(&hdd->arm);
	if (hdd->destaging)
		hdd->destaging = 0;
	else
		done_add(hdd->done, hdd->current.id, hdd->arm.free_at);
}

void hdd_submit(struct hdd *hdd, const struct request *request)
{
	hdd->waiting[hdd->count++] = *request;
	if (hdd->arm.busy)
		admit(hdd, request->arrival);
	else
		start(hdd, request->arrival);
}

void hdd_advance(struct hdd *hdd, uint64_t now)
{
	while (hdd->arm.busy && hdd->arm.free_at <= now) {
		finish(hdd);
		start(hdd, hdd->arm.free_at);
	}
}

uint64_t hdd_wake(const struct hdd *hdd)
{
	return hdd->arm.busy ? hdd->arm.free_at : DISK_NEVER;
}
