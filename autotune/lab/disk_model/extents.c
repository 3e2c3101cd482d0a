#include "extents.h"

#include <stdlib.h>
#include <string.h>

#define SECTOR 512

/* The first extent that ends at or after `offset`. */
static unsigned find(const struct extents *set, uint64_t offset)
{
	unsigned low = 0, high = set->count;

	while (low < high) {
		unsigned middle = (low + high) / 2;
		if (set->item[middle].end < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool extents_init(struct extents *set, uint64_t bytes)
{
	*set = (struct extents){0};
	set->item = malloc((bytes / SECTOR + 4) * sizeof *set->item);
	return set->item != NULL;
}

/* Puts `count` extents in the place of the `gone` extents at `at`. */
static void splice(struct extents *set, unsigned at, unsigned gone, const struct extent *with,
                   unsigned count)
{
	memmove(set->item + at + count, set->item + at + gone,
	        (set->count - at - gone) * sizeof *set->item);
	if (count)
		memcpy(set->item + at, with, count * sizeof *with);
	set->count += count - gone;
}

void extents_add(struct extents *set, uint64_t start, uint64_t end)
{
	struct extent joined = {start, end};
	unsigned first, last;

	first = last = find(set, start);
	while (last < set->count && set->item[last].start <= end) {
		const struct extent *old = &set->item[last++];
		set->bytes -= old->end - old->start;
		if (old->start < joined.start)
			joined.start = old->start;
		if (old->end > joined.end)
			joined.end = old->end;
	}
	splice(set, first, last - first, &joined, 1);
	set->bytes += joined.end - joined.start;
}

struct extent extents_take(struct extents *set, uint64_t from, uint64_t limit)
{
	unsigned at = find(set, from + 1);
	struct extent old, taken, rest[2];
	unsigned left = 0;

	if (at == set->count) {
		at = 0;
		from = 0;
	}
	old = set->item[at];
	taken = old;
	if (from > taken.start)
		taken.start = from;
	if (taken.end - taken.start > limit)
		taken.end = taken.start + limit;
	if (taken.start > old.start)
		rest[left++] = (struct extent){old.start, taken.start};
	if (taken.end < old.end)
		rest[left++] = (struct extent){taken.end, old.end};
	splice(set, at, 1, rest, left);
	set->bytes -= taken.end - taken.start;
	return taken;
}

bool extents_hold(const struct extents *set, uint64_t start, uint64_t end)
{
	unsigned at = find(set, end);

	return at < set->count && set->item[at].start <= start;
}
