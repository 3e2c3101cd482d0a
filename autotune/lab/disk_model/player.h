/* Plays the disk model in real time. One disk a process. */
#ifndef AUTOTUNE_PLAYER_H
#define AUTOTUNE_PLAYER_H

#include "disk.h"

/* Starts the disk's threads. From then on it obeys the files `slowdown` (a factor) and `fail` (not
 * 0: every request fails) in the folder `control`. Returns false with errno set. */
bool player_start(const struct disk_spec *spec, const char *control);

/* Whether requests are to fail now. */
bool player_failing(void);

/* Returns when the disk has done the request; false with errno set if it has too many. */
bool player_play(enum disk_op op, uint64_t offset, uint64_t bytes);

#endif
