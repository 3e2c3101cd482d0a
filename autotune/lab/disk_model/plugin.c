/* An nbdkit plugin: data in memory, which is gone with the process, time from the disk model.
 *
 * A request moves its data at once, then waits until the disk would have done it.
 */
#define _GNU_SOURCE
#define NBDKIT_API_VERSION 2

#include <errno.h>
#include <nbdkit-plugin.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "player.h"

#define THREAD_MODEL NBDKIT_THREAD_MODEL_PARALLEL

static const struct {
	const char *name;
	size_t offset;
} fields[] = {
#define FIELD(name) {#name, offsetof(struct disk_spec, name)}
	FIELD(rotating), FIELD(size), FIELD(rate), FIELD(inner_rate), FIELD(queue),
	FIELD(seek_ns), FIELD(rotation_ns), FIELD(lookahead), FIELD(cache), FIELD(channels), FIELD(read_ns),
	FIELD(write_ns), FIELD(burst), FIELD(sustained),
};

static struct disk_spec spec;
static char *control_path;
static char *image;

static int lab_config(const char *key, const char *value)
{
	for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
		if (!strcmp(key, fields[i].name))
			return nbdkit_parse_uint64_t(key, value,
			                             (uint64_t *)((char *)&spec + fields[i].offset));
	if (!strcmp(key, "control"))
		return (control_path = nbdkit_absolute_path(value)) ? 0 : -1;
	nbdkit_error("unknown parameter %s", key);
	return -1;
}

/* Memory that was never used may cost more than the disk that it plays, so all of it is taken in
 * advance, while the kernel boots. Where that fails, the first write to it takes it. */
static void *populate(void *unused)
{
	madvise(image, spec.size, MADV_HUGEPAGE);
	madvise(image, spec.size, MADV_POPULATE_WRITE);
	return unused;
}

/* nbdkit may fork until now, and threads do not survive that. */
static int lab_after_fork(void)
{
	pthread_t thread;

	image = mmap(NULL, spec.size, PROT_READ | PROT_WRITE,
	             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (image == MAP_FAILED || !player_start(&spec, control_path) ||
	    pthread_create(&thread, NULL, populate, NULL)) {
		nbdkit_error("the disk does not start: %m");
		return -1;
	}
	pthread_detach(thread);
	return 0;
}

static void *lab_open(int readonly)
{
	(void)readonly;
	return NBDKIT_HANDLE_NOT_NEEDED;
}

static int64_t lab_get_size(void *handle)
{
	(void)handle;
	return (int64_t)spec.size;
}

static int fail(int number)
{
	nbdkit_set_error(number);
	return -1;
}

static int lab_pread(void *handle, void *data, uint32_t bytes, uint64_t offset, uint32_t flags)
{
	(void)handle, (void)flags;
	if (player_failing())
		return fail(EIO);
	memcpy(data, image + offset, bytes);
	return player_play(DISK_READ, offset, bytes) ? 0 : fail(errno);
}

static int lab_pwrite(void *handle, const void *data, uint32_t bytes, uint64_t offset,
                      uint32_t flags)
{
	(void)handle, (void)flags;
	if (player_failing())
		return fail(EIO);
	memcpy(image + offset, data, bytes);
	return player_play(DISK_WRITE, offset, bytes) ? 0 : fail(errno);
}

static int lab_flush(void *handle, uint32_t flags)
{
	(void)handle, (void)flags;
	if (player_failing())
		return fail(EIO);
	return player_play(DISK_FLUSH, 0, 0) ? 0 : fail(errno);
}

static struct nbdkit_plugin plugin = {
	.name = "lab-disk",
	.config = lab_config,
	.after_fork = lab_after_fork,
	.open = lab_open,
	.get_size = lab_get_size,
	.pread = lab_pread,
	.pwrite = lab_pwrite,
	.flush = lab_flush,
};

NBDKIT_REGISTER_PLUGIN(plugin)
