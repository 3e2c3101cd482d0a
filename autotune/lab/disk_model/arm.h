/* The mechanics of a rotating disk: where the head is, and what the read buffer holds.
 *
 * Tracks form one spiral, so a sequential transfer never waits, and the byte under the head
 * follows from the time: the platter is at angle `time mod rotation`.
 */
#ifndef AUTOTUNE_ARM_H
#define AUTOTUNE_ARM_H

#include "model.h"

#define SEGMENTS 8 /* sequential streams the read buffer follows */

struct segment {
	uint64_t start, end; /* bytes */
	uint64_t used;       /* ns */
};

struct arm {
	const struct disk_spec *spec;
	bool busy;
	uint64_t free_at; /* when the work at hand ends, or look-ahead began */
	uint64_t head;    /* the byte under the head then */
	uint64_t wanted;  /* where the last request of the live segment ended */
	struct segment segment[SEGMENTS];
	int live;         /* the segment that look-ahead extends, or -1 */
};

void arm_init(struct arm *arm, const struct disk_spec *spec);

/* From `now`, until the byte `start` passes under the head. */
int64_t arm_positioning(const struct arm *arm, uint64_t start, uint64_t now);

/* Whether the read buffer answers this read; if so, look-ahead follows it. */
bool arm_buffered(struct arm *arm, uint64_t start, uint64_t end, uint64_t now);

/* Starts the arm, which must not be busy; `free_at` then says when it will be done. */
void arm_read(struct arm *arm, uint64_t start, uint64_t end, uint64_t now);
void arm_write(struct arm *arm, uint64_t start, uint64_t end, uint64_t now);

/* Ends the work at hand, at `free_at`. */
void arm_finish(struct arm *arm);

#endif
