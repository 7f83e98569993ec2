/*
 * s3/process.c - runs the program of a profile's credential_process, as /bin/sh does, and
 * takes what it prints. It has a minute to end, then it and what it started are killed.
 * Thread class: plain function.
 */
#include "s3/s3_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PROCESS_SECONDS = 60,
    PROCESS_BYTES_MOST = 65536
};

extern char **environ;

/* Reads all that the process prints, until it closes its end. */
static zarr_status read_output(struct zr_str *out, int fd, uint64_t end,
                               const zarr_cancel *cancel, zarr_error *err)
{
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    char piece[4096];
    ssize_t n = 1;
    zarr_status st = ZARR_OK;

    zr_s3_text_reserve(out, PROCESS_BYTES_MOST + sizeof piece); /* no copy stays behind */
    while (n != 0) {
        ZR_TRY(zr_cancel_check(cancel, err));
        if (zr_now_ns() > end)
            ZR_FAIL(err, ZARR_ERR_IO, "credential_process did not end within %d s",
                    PROCESS_SECONDS);
        if (poll(&ready, 1, 50) <= 0)
            continue;
        n = read(fd, piece, sizeof piece);
        if (n < 0 && errno != EINTR)
            ZR_LEAVE(zr_fail_os(err, ZARR_ERR_IO, errno, "credential_process"));
        if (n > 0)
            zr_str_append(out, piece, (size_t)n);
        if (out->bytes > PROCESS_BYTES_MOST)
            ZR_FAIL(err, ZARR_ERR_IO, "credential_process prints more than 64 KiB");
    }
    st = zr_str_status(out, err);
out:
    zr_wipe(piece, sizeof piece);
    return st;
}

/* Waits for the end of the process, which has closed its output. Then *child is -1. */
static zarr_status wait_process(pid_t *child, uint64_t end, const zarr_cancel *cancel,
                                zarr_error *err)
{
    int status = 0;
    pid_t ended;

    while ((ended = waitpid(*child, &status, WNOHANG)) == 0 ||
           (ended < 0 && errno == EINTR)) {
        ZR_CHECK(zr_cancel_check(cancel, err));
        if (zr_now_ns() > end)
            return zr_fail(err, ZARR_ERR_IO, "credential_process did not end within %d s",
                           PROCESS_SECONDS);
        (void)poll(NULL, 0, 5);
    }
    *child = -1;
    if (ended < 0)
        return zr_fail_os(err, ZARR_ERR_IO, errno,
                          "it is not known how credential_process ended");
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        return zr_fail(err, ZARR_ERR_IO, "credential_process failed (status %d)", status);
    return ZARR_OK;
}

/* A group of its own, which can be killed as a whole, and the usual signals. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t set;
    int failure;

    (void)sigemptyset(&set);
    failure = posix_spawnattr_setsigmask(attributes, &set);
    (void)sigaddset(&set, SIGPIPE);
    (void)sigaddset(&set, SIGCHLD);
    if (!failure)
        failure = posix_spawnattr_setsigdefault(attributes, &set);
    if (!failure)
        failure = posix_spawnattr_setpgroup(attributes, 0);
    if (!failure)
        failure = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETPGROUP |
                                                           POSIX_SPAWN_SETSIGMASK |
                                                           POSIX_SPAWN_SETSIGDEF);
    return failure;
}

static int spawn_shell(pid_t *child, int fd, const char *command)
{
    char shell[] = "sh", option[] = "-c";
    char *const words[] = {shell, option, (char *)command, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int failure = posix_spawn_file_actions_init(&actions);

    if (failure)
        return failure;
    failure = posix_spawnattr_init(&attributes);
    if (failure) {
        (void)posix_spawn_file_actions_destroy(&actions);
        return failure;
    }
    failure = set_attributes(&attributes);
    if (!failure)
        failure = posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    if (!failure)
        failure = posix_spawn_file_actions_adddup2(&actions, fd, 1);
    if (!failure)
        failure = posix_spawn(child, "/bin/sh", &actions, &attributes, words, environ);
    (void)posix_spawnattr_destroy(&attributes);
    (void)posix_spawn_file_actions_destroy(&actions);
    return failure;
}

zarr_status zr_s3_fetch_process(struct zr_str *out, const char *command,
                                const zarr_cancel *cancel, zarr_error *err)
{
    const uint64_t end = zr_now_ns() + PROCESS_SECONDS * UINT64_C(1000000000);
    int fd[2], failure;
    pid_t child = -1;
    zarr_status st;

    if (pipe2(fd, O_CLOEXEC) != 0)
        return zr_fail_os(err, ZARR_ERR_IO, errno, "cannot start credential_process");
    failure = spawn_shell(&child, fd[1], command);
    (void)close(fd[1]);
    if (failure) {
        (void)close(fd[0]);
        return zr_fail_os(err, ZARR_ERR_IO, failure, "cannot start credential_process");
    }
    st = read_output(out, fd[0], end, cancel, err);
    (void)close(fd[0]);
    if (st == ZARR_OK)
        st = wait_process(&child, end, cancel, err);
    if (child > 0) {
        (void)kill(-child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return st;
}
