/* One thread sleeps until the model's next moment, an absolute time: being woken late delays an
 * answer, but never the disk's own schedule. Another reads the control files now and then. */
#define _GNU_SOURCE

#include "player.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "model.h"

#define POLL_US 100000
#define LEAST_SLOWDOWN 0.001
#define MOST_SLOWDOWN 1000

struct waiter {
	pthread_cond_t wake;
	bool done;
};

static struct disk *disk;
static const char *control_folder;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed; /* what the disk does next may be something else now */
static _Atomic bool failing;

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* The number in a control file, or `otherwise` if it holds none, as while it is being rewritten. */
static double control(const char *name, double otherwise)
{
	char path[4096], text[32] = "", *end;
	double value;
	int fd;

	snprintf(path, sizeof path, "%s/%s", control_folder, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return otherwise;
	if (read(fd, text, sizeof text - 1) < 0)
		text[0] = 0;
	close(fd);
	value = strtod(text, &end);
	return end == text ? otherwise : value;
}

static double obey(double slowdown)
{
	double wanted = control("slowdown", slowdown);

	failing = control("fail", failing) != 0;
	/* Written so that not-a-number is out of range. */
	if (wanted == slowdown || !(wanted >= LEAST_SLOWDOWN && wanted <= MOST_SLOWDOWN))
		return slowdown;
	pthread_mutex_lock(&lock);
	disk_slow_down(disk, (uint64_t)(wanted * 1000), now_ns());
	pthread_cond_signal(&changed);
	pthread_mutex_unlock(&lock);
	return wanted;
}

static void *control_loop(void *unused)
{
	for (double slowdown = 1;; usleep(POLL_US))
		slowdown = obey(slowdown);
	return unused;
}

static void *schedule_loop(void *unused)
{
	prctl(PR_SET_TIMERSLACK, 1UL);
	pthread_mutex_lock(&lock);
	for (;;) {
		struct disk_completion taken;
		struct timespec until;
		uint64_t wake;

		while (disk_take(disk, now_ns(), &taken)) {
			struct waiter *waiter = (struct waiter *)(uintptr_t)taken.id;
			waiter->done = true;
			pthread_cond_signal(&waiter->wake);
		}
		wake = disk_wake(disk);
		if (wake == DISK_NEVER) {
			pthread_cond_wait(&changed, &lock);
			continue;
		}
		until.tv_sec = (time_t)(wake / NS_PER_S);
		until.tv_nsec = (long)(wake % NS_PER_S);
		pthread_cond_timedwait(&changed, &lock, &until);
	}
	return unused;
}

bool player_start(const struct disk_spec *spec, const char *control)
{
	pthread_condattr_t clock;
	pthread_t thread;

	control_folder = control;
	disk = disk_new(spec);
	if (!disk)
		return false;
	obey(1);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&changed, &clock);
	errno = pthread_create(&thread, NULL, schedule_loop, NULL);
	if (!errno)
		errno = pthread_create(&thread, NULL, control_loop, NULL);
	return !errno;
}

bool player_failing(void)
{
	return failing;
}

bool player_play(enum disk_op op, uint64_t offset, uint64_t bytes)
{
	struct waiter waiter = {PTHREAD_COND_INITIALIZER, false};
	bool taken;

	pthread_mutex_lock(&lock);
	taken = disk_submit(disk, (uintptr_t)&waiter, op, offset, bytes, now_ns());
	pthread_cond_signal(&changed);
	while (taken && !waiter.done)
		pthread_cond_wait(&waiter.wake, &lock);
	pthread_mutex_unlock(&lock);
	pthread_cond_destroy(&waiter.wake);
	if (!taken)
		errno = EBUSY;
	return taken;
}
