/* Shared by the disk models; not for their callers. */
#ifndef AUTOTUNE_MODEL_H
#define AUTOTUNE_MODEL_H

#include "disk.h"

#define NS_PER_S 1000000000ULL

struct request {
	uint64_t id;
	enum disk_op op;
	uint64_t start, end; /* bytes */
	uint64_t arrival;    /* ns */
};

/* Completed requests that nobody has taken yet. */
struct done {
	struct disk_completion item[DISK_MAX_REQUESTS];
	unsigned count;
};

void done_add(struct done *done, uint64_t id, uint64_t time);

static inline uint64_t transfer_ns(uint64_t bytes, uint64_t rate)
{
	return (uint64_t)((unsigned __int128)bytes * NS_PER_S / rate);
}

struct hdd;
struct hdd *hdd_new(const struct disk_spec *spec, struct done *done);
void hdd_submit(struct hdd *hdd, const struct request *request);
void hdd_advance(struct hdd *hdd, uint64_t now);
uint64_t hdd_wake(const struct hdd *hdd);
void hdd_free(struct hdd *hdd);

struct ssd;
struct ssd *ssd_new(const struct disk_spec *spec, struct done *done);
void ssd_submit(struct ssd *ssd, const struct request *request);
void ssd_free(struct ssd *ssd);

#endif
