/*
 * base/cgroup.c - what the control groups of this process allow it: cores and memory.
 * A container has the cores of its machine in its affinity mask, and its quota only here.
 * Source: the kernel's documents admin-guide/cgroup-v2 (cpu.max, memory.max) and
 * cgroup-v1 (cpu.cfs_quota_us, memory.limit_in_bytes).
 * Thread class: plain functions.
 */
#include "base/base.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    CGROUP_TEXT = 64,    /* bytes of a file with a limit: two numbers */
    CGROUP_PATH = 4096,  /* bytes of a folder's name */
    CGROUP_LINES = 16384 /* bytes of /proc/self/cgroup */
};

/* What one folder allows; UINT64_MAX: it has no limit. */
typedef uint64_t (*cgroup_limit)(const char *folder);

/* Reads a file from its start; 0: it cannot be read, or is empty. */
static size_t cgroup_read(const char *path, char *out, size_t room)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    size_t n = 0;

    if (fd < 0)
        return 0;
    while (n + 1 < room) {
        const ssize_t got = read(fd, out + n, room - 1 - n);

        if (got <= 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    out[n] = '\0';
    return n;
}

/* Reads up to two numbers of a file; a word such as "max" or "-1" ends them. */
static uint32_t cgroup_numbers(const char *folder, const char *file, uint64_t out[2])
{
    char path[CGROUP_PATH], text[CGROUP_TEXT];
    const char *at = text;
    uint32_t n = 0;
    const int used = snprintf(path, sizeof path, "%s/%s", folder, file);

    if (used < 0 || (size_t)used >= sizeof path || !cgroup_read(path, text, sizeof text))
        return 0;
    for (; n < 2; n++) {
        const size_t digits = strspn(at, "0123456789");

        if (digits == 0 || !zr_parse_u64(at, digits, &out[n]))
            break;
        at += digits;
        at += strspn(at, " \n");
    }
    return n;
}

static uint64_t cgroup_quota_cores(uint64_t quota, uint64_t period)
{
    if (quota == 0 || period == 0)
        return UINT64_MAX;
    return quota / period + (quota % period != 0);
}

static uint64_t cgroup_cores_v2(const char *folder)
{
    uint64_t number[2];

    return cgroup_numbers(folder, "cpu.max", number) == 2
               ? cgroup_quota_cores(number[0], number[1])
               : UINT64_MAX;
}

static uint64_t cgroup_cores_v1(const char *folder)
{
    uint64_t quota[2], period[2];

    if (!cgroup_numbers(folder, "cpu.cfs_quota_us", quota) ||
        !cgroup_numbers(folder, "cpu.cfs_period_us", period))
        return UINT64_MAX;
    return cgroup_quota_cores(quota[0], period[0]);
}

static uint64_t cgroup_bytes_v2(const char *folder)
{
    uint64_t number[2];

    return cgroup_numbers(folder, "memory.max", number) ? number[0] : UINT64_MAX;
}

static uint64_t cgroup_bytes_v1(const char *folder)
{
    uint64_t number[2];

    return cgroup_numbers(folder, "memory.limit_in_bytes", number) ? number[0]
                                                                   : UINT64_MAX;
}

/* The least limit of a group and of the groups above it. A container may not see the
 * folder of its own group: then only those above it, up to its root, say something. */
static uint64_t cgroup_least(const char *root, const char *group, cgroup_limit limit)
{
    char folder[CGROUP_PATH];
    const size_t stop = strlen(root);
    const int used = snprintf(folder, sizeof folder, "%s%s", root, group);
    uint64_t least = UINT64_MAX;

    if (used < 0 || (size_t)used >= sizeof folder)
        return limit(root);
    for (;;) {
        char *slash;
        const uint64_t one = limit(folder);

        least = ZR_MIN(least, one);
        slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < stop)
            return least;
        *slash = '\0';
    }
}

/* Whether a list such as "cpu,cpuacct" has a word. */
static bool cgroup_has(const char *list, const char *word)
{
    const size_t n = strlen(word);

    for (const char *at = list; *at; at += strcspn(at, ","), at += *at == ',')
        if (strcspn(at, ",") == n && memcmp(at, word, n) == 0)
            return true;
    return false;
}

/* One line of /proc/self/cgroup, "number:controllers:group". */
static uint64_t cgroup_line(char *line, const struct zr_cgroup_files *files,
                            const char *controller, const cgroup_limit limits[2])
{
    char root[CGROUP_PATH];
    char *controllers = strchr(line, ':'), *group;
    int used;

    if (!controllers || !(group = strchr(controllers + 1, ':')))
        return UINT64_MAX;
    *controllers++ = '\0';
    *group++ = '\0';
    if (strcmp(line, "0") == 0)
        return cgroup_least(files->root, group, limits[1]);
    if (!cgroup_has(controllers, controller))
        return UINT64_MAX;
    used = snprintf(root, sizeof root, "%s/%s", files->root, controller);
    if (used < 0 || (size_t)used >= sizeof root)
        return UINT64_MAX;
    return cgroup_least(root, group, limits[0]);
}

static uint64_t cgroup_allows(const struct zr_cgroup_files *files, const char *controller,
                              const cgroup_limit limits[2])
{
    static const struct zr_cgroup_files own = {"/sys/fs/cgroup", "/proc/self/cgroup"};
    char text[CGROUP_LINES];
    char *rest = text;
    uint64_t least = UINT64_MAX;

    if (!files)
        files = &own;
    if (!cgroup_read(files->groups, text, sizeof text))
        return least;
    while (*rest) {
        char *line = rest;
        uint64_t one;

        rest += strcspn(rest, "\n");
        if (*rest)
            *rest++ = '\0';
        one = cgroup_line(line, files, controller, limits);
        least = ZR_MIN(least, one);
    }
    return least;
}

uint64_t zr_cgroup_cores(const struct zr_cgroup_files *files)
{
    static const cgroup_limit limits[2] = {cgroup_cores_v1, cgroup_cores_v2};

    return cgroup_allows(files, "cpu", limits);
}

uint64_t zr_cgroup_bytes(const struct zr_cgroup_files *files)
{
    static const cgroup_limit limits[2] = {cgroup_bytes_v1, cgroup_bytes_v2};

    return cgroup_allows(files, "memory", limits);
}
