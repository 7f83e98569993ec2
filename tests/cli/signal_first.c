/*
 * cli/signal_first.c - a library to preload. The program gets SIGINT when it calls a
 * function that is about to wait, but before the system call: the handler returns first,
 * so the signal ends no wait. Waits are those for standard input, for standard output,
 * and for the other end of a FIFO.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* Once: the program's handler is for one signal. */
static void signal_program(int is_waiting)
{
    struct sigaction old;

    if (is_waiting && sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler != SIG_DFL)
        raise(SIGINT);
}

static int is_waiting_for(int fd, short event)
{
    struct pollfd p = {.fd = fd, .events = event};

    return REAL(poll)(&p, 1, 0) == 0;
}

static int is_fifo(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISFIFO(st.st_mode);
}

int poll(struct pollfd *fds, nfds_t n, int timeout)
{
    signal_program(is_waiting_for(0, POLLIN));
    return REAL(poll)(fds, n, timeout);
}

ssize_t read(int fd, void *data, size_t bytes)
{
    signal_program(fd == 0 && is_waiting_for(0, POLLIN));
    return REAL(read)(fd, data, bytes);
}

size_t fread(void *data, size_t size, size_t n, FILE *file)
{
    signal_program(file == stdin && is_waiting_for(0, POLLIN));
    return REAL(fread)(data, size, n, file);
}

size_t fwrite(const void *data, size_t size, size_t n, FILE *file)
{
    signal_program(file == stdout && is_waiting_for(1, POLLOUT));
    return REAL(fwrite)(data, size, n, file);
}

int fflush(FILE *file)
{
    signal_program(file == stdout && is_waiting_for(1, POLLOUT));
    return REAL(fflush)(file);
}

static int open_file(const char *path, int flags, va_list args)
{
    signal_program(is_fifo(path));
    return REAL(openat)(AT_FDCWD, path, flags,
                        flags & (O_CREAT | O_TMPFILE) ? va_arg(args, int) : 0);
}

int open(const char *path, int flags, ...)
{
    va_list args;
    int fd;

    va_start(args, flags);
    fd = open_file(path, flags, args);
    va_end(args);
    return fd;
}

int open64(const char *path, int flags, ...)
{
    va_list args;
    int fd;

    va_start(args, flags);
    fd = open_file(path, flags, args);
    va_end(args);
    return fd;
}

FILE *fopen(const char *path, const char *mode)
{
    signal_program(is_fifo(path));
    return REAL(fopen)(path, mode);
}
