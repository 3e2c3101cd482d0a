/* The time a simulated disk takes, in virtual time.
 *
 * Nothing here reads a clock, sleeps or starts a thread: the caller says when a request arrives and
 * is told when it completes. The same calls with the same times give the same answers, so a unit
 * test checks the model against arithmetic, and plugin.c plays it in real time.
 *
 * Times are nanoseconds from any fixed origin; they must not go backwards from call to call.
 */
#ifndef AUTOTUNE_DISK_H
#define AUTOTUNE_DISK_H

#include <stdbool.h>
#include <stdint.h>

#define DISK_MAX_REQUESTS 256
#define DISK_NEVER UINT64_MAX

enum disk_op { DISK_READ, DISK_WRITE, DISK_FLUSH };

/* What a disk is. Fields that its kind does not have are ignored. */
struct disk_spec {
	uint64_t rotating;         /* 1: heads and platters; 0: flash */
	uint64_t size;             /* bytes */
	uint64_t rate;             /* bytes/s: under the head, or over the link of a flash disk */
	uint64_t inner_rate;       /* bytes/s under the head at the last byte; 0: as at the first */
	uint64_t queue;            /* requests the disk looks at together */

	uint64_t seek_ns;          /* average over random pairs of places */
	uint64_t rotation_ns;      /* one revolution */
	uint64_t lookahead;        /* bytes read on after a read, while nothing else is wanted */
	uint64_t cache;            /* bytes of volatile write cache; 0: writes go to the platter */

	uint64_t channels;         /* flash channels that work in parallel */
	uint64_t read_ns;          /* latency of a flash read, before transfer */
	uint64_t write_ns;         /* latency of a flash write, before transfer */
	uint64_t burst;            /* bytes written at full rate before the slow-down */
	uint64_t sustained;        /* bytes/s of writes once the burst is used up */
};

struct disk_completion {
	uint64_t id;
	uint64_t time;
};

struct disk;

/* Returns NULL if memory is short. The spec is copied. */
struct disk *disk_new(const struct disk_spec *spec);
void disk_free(struct disk *disk);

/* From `now` on, everything takes `permille`/1000 times as long as on a new disk. */
void disk_slow_down(struct disk *disk, uint64_t permille, uint64_t now);

/* Hands a request to the disk. Returns false if DISK_MAX_REQUESTS are already waiting. */
bool disk_submit(struct disk *disk, uint64_t id, enum disk_op op, uint64_t offset, uint64_t bytes,
                 uint64_t now);

/* Takes the earliest request completed at or before `now`. Returns false if there is none. */
bool disk_take(struct disk *disk, uint64_t now, struct disk_completion *taken);

/* When the disk must next be looked at, or DISK_NEVER. */
uint64_t disk_wake(const struct disk *disk);

#endif
