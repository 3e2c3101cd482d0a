/* A set of byte ranges, sorted, never overlapping, adjacent ones joined. */
#ifndef AUTOTUNE_EXTENTS_H
#define AUTOTUNE_EXTENTS_H

#include <stdbool.h>
#include <stdint.h>

struct extent {
	uint64_t start, end;
};

struct extents {
	struct extent *item;
	unsigned count;
	uint64_t bytes; /* the sum of all */
};

/* Makes room for `bytes` in whole sectors of 512. Returns false if memory is short. */
bool extents_init(struct extents *set, uint64_t bytes);

void extents_add(struct extents *set, uint64_t start, uint64_t end);

/* Takes out up to `limit` bytes: what lies at `from` or next after it, else the first of all.
 * The set must not be empty. */
struct extent extents_take(struct extents *set, uint64_t from, uint64_t limit);

bool extents_hold(const struct extents *set, uint64_t start, uint64_t end);

#endif
