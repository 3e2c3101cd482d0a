/* Lets the lab's kernel run on processors with more register state than it knows of.
 *
 * User-mode Linux before 6.13 sets a process's floating-point registers by ptrace, from a buffer of
 * fixed size. The host refuses (EFAULT) a buffer that is shorter than all state of the processor,
 * which has 11 KB with AMX (Intel, from Sapphire Rapids on). This file is preloaded into that
 * kernel. It passes the same registers on in a longer buffer. The rest of it is ignored: the
 * header of the state (XSTATE_BV) says that it is not in use.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

/* More than any processor has; the host reads no more of it than it needs. */
static char longest[1 << 16];

long ptrace(enum __ptrace_request request, ...)
{
    static long (*next)(enum __ptrace_request, ...);
    va_list list;
    va_start(list, request);
    long pid = va_arg(list, long);
    void *address = va_arg(list, void *);
    void *data = va_arg(list, void *);
    va_end(list);
    struct iovec whole = {longest, sizeof longest};
    const struct iovec *given = data;

    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "ptrace");
    if (request == PTRACE_SETREGSET && (long)address == NT_X86_XSTATE &&
        given->iov_len < sizeof longest) {
        memcpy(longest, given->iov_base, given->iov_len);
        data = &whole;
    }
    return next(request, pid, address, data);
}
