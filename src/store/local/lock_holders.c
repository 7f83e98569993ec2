/*
 * store/local/lock_holders.c - which other processes have a lock file open, for messages
 * about long waits. Reads /proc, where it exists, and sees the processes that this user
 * may look into. A process that has the file open either holds the lock or waits for it.
 * Thread class: plain functions.
 */
#include "store/local/local_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    HOLDERS_MAX = 4, /* processes that a message names */
    COMMAND_BYTES = 32
};

/* Whether the entry of /proc/PID/fd leads to the file. Compares the entry's text first,
 * because a stat of an open file may hang on a dead network file system. */
static bool holder_has_file(int fds, const char *entry, const struct stat *file,
                            const char *name)
{
    char target[PATH_MAX];
    const size_t n = strlen(name);
    const ssize_t got = readlinkat(fds, entry, target, sizeof target);
    struct stat st;

    return got > (ssize_t)n && target[(size_t)got - n - 1] == '/' &&
           memcmp(target + (size_t)got - n, name, n) == 0 &&
           fstatat(fds, entry, &st, 0) == 0 && st.st_dev == file->st_dev &&
           st.st_ino == file->st_ino;
}

static DIR *holder_open_dir(int proc, const char *pid, const char *sub)
{
    char path[64];
    int fd;
    DIR *dir;

    if (snprintf(path, sizeof path, "%s%s", pid, sub) >= (int)sizeof path)
        return NULL;
    fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dir = fd < 0 ? NULL : fdopendir(fd);
    if (fd >= 0 && !dir)
        close(fd);
    return dir;
}

static bool holder_is(int proc, const char *pid, const struct stat *file,
                      const char *name)
{
    DIR *fds = holder_open_dir(proc, pid, "/fd");
    const struct dirent *e;
    bool found = false;

    while (fds && !found && (e = readdir(fds)))
        found = holder_has_file(dirfd(fds), e->d_name, file, name);
    if (fds)
        closedir(fds);
    return found;
}

/* Gets the name that a process has given itself; control characters become '?'. */
static void holder_command(int proc, const char *pid, char out[COMMAND_BYTES])
{
    char path[64];
    ssize_t n = -1;
    int fd;

    snprintf(path, sizeof path, "%.32s/comm", pid); /* a number: it fits */
    fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        n = read(fd, out, COMMAND_BYTES - 1);
        close(fd);
    }
    out[n > 0 ? n : 0] = '\0';
    out[strcspn(out, "\n")] = '\0';
    for (char *c = out; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || (unsigned char)*c >= 0x7f)
            *c = '?';
}

void zr_local_lock_holders(int fd, const char *name, char out[ZR_LOCK_HOLDER_BYTES])
{
    DIR *proc = holder_open_dir(AT_FDCWD, "/proc", "");
    const long self = (long)getpid();
    const struct dirent *e;
    struct stat file;
    size_t n = 0;
    int n_found = 0;

    while (proc && fstat(fd, &file) == 0 && n_found < HOLDERS_MAX &&
           (e = readdir(proc))) {
        char command[COMMAND_BYTES];
        uint64_t pid;

        if (!zr_parse_u64(e->d_name, strlen(e->d_name), &pid) || pid == (uint64_t)self ||
            !holder_is(dirfd(proc), e->d_name, &file, name))
            continue;
        holder_command(dirfd(proc), e->d_name, command);
        n += (size_t)snprintf(out + n, ZR_LOCK_HOLDER_BYTES - n,
                              "%sprocess %" PRIu64 " (%s)", n_found++ > 0 ? ", " : "",
                              pid, command);
    }
    if (proc)
        closedir(proc);
    if (n_found > 0)
        snprintf(out + n, ZR_LOCK_HOLDER_BYTES - n, " %s it open",
                 n_found == 1 ? "has" : "have");
    else
        snprintf(out, ZR_LOCK_HOLDER_BYTES,
                 "its holder is unknown: this process by another handle, another user or "
                 "another machine");
}
