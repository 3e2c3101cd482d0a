/* A flash disk: channels that work in parallel behind one link, and a burst of fast writes.
 *
 * Requests are served in the order they come, so when one completes is known as it arrives.
 */
#include <stdlib.h>

#include "model.h"

#define STRIPE (64 * 1024) /* consecutive stripes lie on consecutive channels */
#define MAX_CHANNELS 64

struct ssd {
	struct disk_spec spec;
	struct done *done;
	uint64_t free_at[MAX_CHANNELS];
	uint64_t link_free_at;
	uint64_t last_done;
	uint64_t used; /* bytes of the fast area, which may be promised beyond its size */
	uint64_t used_at; /* when that was reckoned */
};

struct ssd *ssd_new(const struct disk_spec *spec, struct done *done)
{
	struct ssd *ssd = calloc(1, sizeof *ssd);

	if (!ssd)
		return NULL;
	ssd->spec = *spec;
	ssd->done = done;
	if (ssd->spec.channels > MAX_CHANNELS)
		ssd->spec.channels = MAX_CHANNELS;
	return ssd;
}

void ssd_free(struct ssd *ssd)
{
	free(ssd);
}

static uint64_t max64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* When the flash has taken in a write of so many bytes. It works the fast area free at the
 * sustained rate, up to the whole burst; what it cannot take at once waits for that. */
static uint64_t programmed(struct ssd *ssd, uint64_t bytes, uint64_t now)
{
	uint64_t rate = ssd->spec.sustained;
	uint64_t freed = (uint64_t)((unsigned __int128)(now - ssd->used_at) * rate / NS_PER_S);

	ssd->used = (freed < ssd->used ? ssd->used - freed : 0) + bytes;
	ssd->used_at = now;
	if (ssd->used <= ssd->spec.burst)
		return now;
	return now + transfer_ns(ssd->used - ssd->spec.burst, rate);
}

void ssd_submit(struct ssd *ssd, const struct request *request)
{
	const struct disk_spec *spec = &ssd->spec;
	uint64_t now = request->arrival, done = now;
	uint64_t latency = request->op == DISK_READ ? spec->read_ns : spec->write_ns;

	if (request->op == DISK_FLUSH) {
		done_add(ssd->done, request->id, max64(now, ssd->last_done));
		return;
	}
	for (uint64_t at = request->start; at < request->end;) {
		uint64_t *channel = &ssd->free_at[at / STRIPE % spec->channels];
		uint64_t stop = (at / STRIPE + 1) * STRIPE;
		uint64_t bytes = (stop < request->end ? stop : request->end) - at;
		/* All channels together are twice as fast as the link, so the link is the cap. */
		uint64_t busy = latency + transfer_ns(bytes * spec->channels, spec->rate * 2);

		*channel = max64(*channel, now) + busy;
		done = max64(done, *channel);
		at += bytes;
	}
	ssd->link_free_at = max64(ssd->link_free_at, now) +
		transfer_ns(request->end - request->start, spec->rate);
	done = max64(done, ssd->link_free_at);
	if (request->op == DISK_WRITE)
		done = max64(done, programmed(ssd, request->end - request->start, now));
	ssd->last_done = max64(ssd->last_done, done);
	done_add(ssd->done, request->id, done);
}
