/* Keeps the lab's kernel from standing still for good.
 *
 * User-mode Linux has one timer, which it sets anew at each SIGALRM. On a busy host that signal was
 * lost: the timer was not set, no signal was pending, and the idle kernel, which sleeps only while
 * the timer is set, spun in os_idle_sleep() with all its processes waiting for their time (6.1.176,
 * 2 of 6 runs beside other labs; a SIGALRM by hand let it go on). There it asks for the timer, with
 * SIGALRM blocked. If none is set and no signal waits, one is sent. One too many does no harm.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

int timer_gettime(timer_t timer, struct itimerspec *left)
{
    static int (*next)(timer_t, struct itimerspec *);
    sigset_t waiting;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "timer_gettime");
    int failed = next(timer, left);
    if (!failed && !left->it_value.tv_sec && !left->it_value.tv_nsec && !sigpending(&waiting) &&
        !sigismember(&waiting, SIGALRM))
        kill(getpid(), SIGALRM);
    return failed;
}
