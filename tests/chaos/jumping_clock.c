/* The time of day of a process, off by as many seconds as a file says: preloaded into it (LD_PRELOAD).
 *
 * JUMPING_CLOCK names a file of eight bytes, a little-endian count of seconds, which every process maps: whoever writes
 * it makes all their clocks jump at once. Monotonic clocks are not touched, and waits until a time of day wait as long
 * as they would have. libfaketime, which does the same, makes short sleeps of Python 3.11 fail with EINVAL.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile const int64_t *offset_s;

__attribute__((constructor)) static void map_offset(void) {
    const char *path = getenv("JUMPING_CLOCK");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof *offset_s, PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        offset_s = mapped;
}

static int64_t off(void) { return offset_s ? *offset_s : 0; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real)
        real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += off();
    return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec precise;
    int result = clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return result;
}

time_t time(time_t *out) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (out)
        *out = now.tv_sec;
    return now.tv_sec;
}

/* A time since the epoch is of the clock that jumps, one since the boot is not. */
static const struct timespec *unjumped(const struct timespec *until, struct timespec *room) {
    if (!until || until->tv_sec < 1000000000)
        return until;
    *room = *until;
    room->tv_sec -= off();
    return room;
}

int pthread_cond_timedwait(pthread_cond_t *restrict c, pthread_mutex_t *restrict m, const struct timespec *restrict t) {
    static int (*real)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
    struct timespec room;
    if (!real)
        real = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    if (!real)
        real = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    return real(c, m, unjumped(t, &room));
}

int sem_timedwait(sem_t *restrict s, const struct timespec *restrict t) {
    static int (*real)(sem_t *, const struct timespec *);
    struct timespec room;
    if (!real)
        real = dlsym(RTLD_NEXT, "sem_timedwait");
    return real(s, unjumped(t, &room));
}
