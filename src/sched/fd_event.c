/*
 * sched/fd_event.c - an event as a descriptor, for loops that wait by poll(), epoll or
 * kqueue. Linux has eventfd, which needs one descriptor; elsewhere it is a pipe.
 * Thread class: solo.
 */
#include "sched/sched.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#ifdef __linux__
#    include <sys/eventfd.h>
#endif

void zr_fd_event_init(struct zr_fd_event *e)
{
    e->read_fd = e->write_fd = -1;
}

#ifdef __linux__

static int fd_event_make(struct zr_fd_event *e)
{
    e->read_fd = e->write_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return e->read_fd < 0 ? errno : 0;
}

#else

static int fd_event_make(struct zr_fd_event *e)
{
    int fd[2];

    if (pipe(fd) != 0)
        return errno;
    for (int i = 0; i < 2; i++) {
        (void)fcntl(fd[i], F_SETFD, FD_CLOEXEC);
        (void)fcntl(fd[i], F_SETFL, O_NONBLOCK);
    }
    e->read_fd = fd[0];
    e->write_fd = fd[1];
    return 0;
}

#endif

zarr_status zr_fd_event_open(struct zr_fd_event *e, zarr_error *err)
{
    const int os_code = fd_event_make(e);

    if (os_code == 0)
        return ZARR_OK;
    zr_fd_event_init(e);
    return zr_fail_os(err, ZARR_ERR_IO, os_code, "cannot open a descriptor for an event");
}

void zr_fd_event_set(const struct zr_fd_event *e)
{
    const uint64_t one = 1;
    ssize_t n;

    if (!zr_fd_event_is_open(e))
        return;
    do
        n = write(e->write_fd, &one, sizeof one);
    while (n < 0 && errno == EINTR);
}

void zr_fd_event_close(struct zr_fd_event *e)
{
    if (zr_fd_event_is_open(e))
        (void)close(e->read_fd);
    if (e->write_fd >= 0 && e->write_fd != e->read_fd)
        (void)close(e->write_fd);
    zr_fd_event_init(e);
}
