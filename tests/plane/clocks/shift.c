/* Preloaded into a process, this shifts its wall clock by the seconds in the file MUSTER_CLOCK_SHIFT, at any moment.
 * Monotonic clocks are as they are, as on a machine whose wall clock is set. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t none, *shift_s = &none;

__attribute__((constructor)) static void map(void) {
    const char *name = getenv("MUSTER_CLOCK_SHIFT");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    void *place = file < 0 ? MAP_FAILED : mmap(0, sizeof none, PROT_READ, MAP_SHARED, file, 0);
    if (place == MAP_FAILED) abort();
    shift_s = place;
    close(file);
}

int clock_gettime(clockid_t clock, struct timespec *moment) {
    long failed = syscall(SYS_clock_gettime, clock, moment);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) moment->tv_sec += *shift_s;
    return (int)failed;
}

int gettimeofday(struct timeval *restrict moment, void *restrict zone) {
    (void)zone;
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    moment->tv_sec = now.tv_sec;
    moment->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *moment) {
    struct timespec now;
    if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
    if (moment) *moment = now.tv_sec;
    return now.tv_sec;
}
