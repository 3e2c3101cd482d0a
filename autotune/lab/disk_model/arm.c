#include "arm.h"

#include <math.h>

#define SETTLE_NS 1000000 /* the shortest seek */
#define MEAN_ROOT 0.5333  /* mean of sqrt(distance) between random places of a disk: 8/15 */
#define SLACK_NS 20000    /* the head may come this late to a byte: the gap between sectors */

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

void arm_init(struct arm *arm, const struct disk_spec *spec)
{
	*arm = (struct arm){.spec = spec, .live = -1};
}

/* How fast the rate falls along the spiral, in (bytes/s)^2 for each byte; 0 if it does not. The
 * platter turns evenly and bits lie equally close, so the rate goes with the radius, and the square
 * of the radius falls by the same for each byte. */
static double fall(const struct disk_spec *spec)
{
	double outer = (double)spec->rate, inner = (double)spec->inner_rate;

	return spec->inner_rate ? (outer * outer - inner * inner) / (double)spec->size : 0;
}

/* How long the head takes from the first byte to this one. */
static uint64_t spiral_ns(const struct disk_spec *spec, uint64_t place)
{
	double outer = (double)spec->rate, each = fall(spec);

	if (each <= 0)
		return transfer_ns(place, spec->rate);
	return (uint64_t)(2e9 / each * (outer - sqrt(outer * outer - each * (double)place)));
}

/* The byte that the head has come to after so long. */
static uint64_t spiral_place(const struct disk_spec *spec, uint64_t ns)
{
	double outer = (double)spec->rate, each = fall(spec), slower;

	if (each <= 0)
		return (uint64_t)((unsigned __int128)ns * spec->rate / NS_PER_S);
	slower = outer - (double)ns * each / 2e9;
	return slower > 0 ? (uint64_t)((outer * outer - slower * slower) / each) : spec->size;
}

/* Where the head of an idle arm has come to: look-ahead reads on, up to its limit. */
static uint64_t head_at(const struct arm *arm, uint64_t now)
{
	uint64_t limit, place;

	if (arm->live < 0 || now <= arm->free_at)
		return arm->head;
	limit = least(arm->wanted + arm->spec->lookahead, arm->spec->size);
	if (limit <= arm->head)
		return arm->head;
	place = spiral_place(arm->spec, spiral_ns(arm->spec, arm->head) + (now - arm->free_at));
	return place < arm->head ? arm->head : least(place, limit);
}

/* What lies on the track of this byte. */
static uint64_t track_bytes(const struct disk_spec *spec, uint64_t place)
{
	double outer = (double)spec->rate;
	double rate = sqrt(outer * outer - fall(spec) * (double)place);

	return (uint64_t)(rate * (double)spec->rotation_ns / 1e9);
}

static uint64_t seek_ns(const struct disk_spec *spec, uint64_t from, uint64_t to)
{
	uint64_t distance = from < to ? to - from : from - to;
	double scale = ((double)spec->seek_ns - SETTLE_NS) / MEAN_ROOT;

	if (distance < track_bytes(spec, from))
		return 0;
	if (scale <= 0)
		return spec->seek_ns;
	return SETTLE_NS + (uint64_t)(scale * sqrt((double)distance / (double)spec->size));
}

/* From `now`, until `start` passes under a head that is over its track; a byte just missed by less
 * than the slack counts as negative time, so that streaming never loses a revolution to rounding. */
static int64_t rotation_wait(const struct disk_spec *spec, uint64_t start, uint64_t now)
{
	uint64_t rotation = spec->rotation_ns;
	uint64_t angle = spiral_ns(spec, start) % rotation;
	uint64_t wait = (angle + rotation - now % rotation) % rotation;

	return wait + SLACK_NS > rotation ? (int64_t)wait - (int64_t)rotation : (int64_t)wait;
}

int64_t arm_positioning(const struct arm *arm, uint64_t start, uint64_t now)
{
	uint64_t seek = seek_ns(arm->spec, head_at(arm, now), start);

	return (int64_t)seek + rotation_wait(arm->spec, start, now + seek);
}

bool arm_buffered(struct arm *arm, uint64_t start, uint64_t end, uint64_t now)
{
	for (int i = 0; i < SEGMENTS; i++) {
		struct segment *segment = &arm->segment[i];
		bool growing = i == arm->live && !arm->busy;

		if (start < segment->start || end > (growing ? head_at(arm, now) : segment->end))
			continue;
		segment->used = now;
		if (growing && end > arm->wanted) {
			arm->head = segment->end = head_at(arm, now);
			/* If the limit had stopped it, it goes on when the platter has come round. */
			arm->free_at = (uint64_t)((int64_t)now + rotation_wait(arm->spec, arm->head, now));
			arm->wanted = end;
		}
		return true;
	}
	return false;
}

static void move(struct arm *arm, uint64_t start, uint64_t end, uint64_t now)
{
	/* A difference of two places on the spiral, not a quotient: it adds up without drift. */
	uint64_t transfer = spiral_ns(arm->spec, end) - spiral_ns(arm->spec, start);

	arm->free_at = (uint64_t)((int64_t)(now + transfer) + arm_positioning(arm, start, now));
	arm->head = end;
	arm->busy = true;
}

static int oldest_segment(const struct arm *arm)
{
	int oldest = 0;

	for (int i = 1; i < SEGMENTS; i++)
		if (arm->segment[i].used < arm->segment[oldest].used)
			oldest = i;
	return oldest;
}

void arm_read(struct arm *arm, uint64_t start, uint64_t end, uint64_t now)
{
	uint64_t head = head_at(arm, now), from = start;
	struct segment *segment = &arm->segment[arm->live < 0 ? 0 : arm->live];

	if (arm->live >= 0)
		segment->end = head;
	if (arm->live >= 0 && segment->start <= start && start < head && head < end)
		from = head; /* the buffer has the first part */
	if (arm->live < 0 || from < head || from - head >= track_bytes(arm->spec, head)) {
		int live = oldest_segment(arm);
		move(arm, from, end, now);
		arm->live = live;
		segment = &arm->segment[live];
		segment->start = segment->end = from;
	} else {
		/* What the head passes over on its way is read too. */
		move(arm, from, end, now);
	}
	segment->used = now;
	if (end - segment->start > 2 * arm->spec->lookahead && end > 2 * arm->spec->lookahead)
		segment->start = end - 2 * arm->spec->lookahead;
	arm->wanted = end;
}

void arm_write(struct arm *arm, uint64_t start, uint64_t end, uint64_t now)
{
	if (arm->live >= 0)
		arm->segment[arm->live].end = head_at(arm, now);
	move(arm, start, end, now);
	arm->live = -1;
}

void arm_finish(struct arm *arm)
{
	arm->busy = false;
	if (arm->live >= 0)
		arm->segment[arm->live].end = arm->head;
}
