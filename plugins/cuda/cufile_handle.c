/*
 * cuda/cufile_handle.c - files that cuFile knows. Registering one costs far more than a
 * read, so files that were read stay registered until others need the room. A handle has
 * a descriptor of its own, which is closed after the handle. While it is open no other
 * file has the same inode, so the inode names the file. Values of a store are replaced
 * and never changed, so a handle never shows old bytes of a newer value. A deleted file
 * keeps its space until its handle goes: with the next new handle. Thread class: shared.
 */
#include "cufile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HANDLES_KEPT = 64
};

struct cufile_handle {
    void *handle;
    int fd;
    int users, kept;
    dev_t device;
    ino_t inode;
    uint64_t used; /* when it was last taken */
};

pthread_mutex_t cufile_handles_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct {
    struct cufile_handle *kept[HANDLES_KEPT];
    uint64_t clock;
} hs;

void *cufile_raw_handle(const struct cufile_handle *h)
{
    return h->handle;
}

static void handle_close(struct cufile_handle *h)
{
    if (h->handle && cufile_runs())
        cufile.cuFileHandleDeregister(h->handle);
    if (h->fd >= 0)
        (void)close(h->fd);
    free(h);
}

static zarr_status handle_open(int file, int flags, struct cufile_handle *h,
                               zarr_error *err)
{
    struct cufile_file is = {.type = CUFILE_OPAQUE_FD};
    struct cufile_result r;
    char path[64];

    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    h->fd = open(path, flags | O_DIRECT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (h->fd < 0)
        return port_host->fail_os(err, ZARR_ERR_UNSUPPORTED, errno,
                                  "GPUDirect Storage: no direct access to the file");
    is.is.fd = h->fd;
    r = cufile.cuFileHandleRegister(&h->handle, &is);
    if (r.code == 0)
        return ZARR_OK;
    h->handle = NULL;
    return port_host->fail(err, ZARR_ERR_UNSUPPORTED,
                           "GPUDirect Storage: cuFile refuses files of this file system "
                           "(error %d)",
                           r.code);
}

/* ---- those that are kept; under the lock -------------------- */

static struct cufile_handle *kept_find(const struct stat *st)
{
    for (int i = 0; i < HANDLES_KEPT; i++) {
        struct cufile_handle *h = hs.kept[i];

        if (h && h->inode == st->st_ino && h->device == st->st_dev) {
            h->users++;
            h->used = ++hs.clock;
            return h;
        }
    }
    return NULL;
}

static int is_deleted(const struct cufile_handle *h)
{
    struct stat st;

    return fstat(h->fd, &st) == 0 && st.st_nlink == 0;
}

/* Moves handles of deleted files that no thread uses to `gone`. Returns how many. */
static int kept_sweep(struct cufile_handle **gone)
{
    int n = 0;

    for (int i = 0; i < HANDLES_KEPT; i++)
        if (hs.kept[i] && hs.kept[i]->users == 0 && is_deleted(hs.kept[i])) {
            gone[n++] = hs.kept[i];
            hs.kept[i] = NULL;
        }
    return n;
}

/* Keeps a handle if there is room, or one that is not in use. Returns that one. */
static struct cufile_handle *kept_add(struct cufile_handle *h)
{
    struct cufile_handle *old = NULL;
    int at = -1;

    for (int i = 0; i < HANDLES_KEPT && (at < 0 || hs.kept[at]); i++) {
        const struct cufile_handle *k = hs.kept[i];

        if (!k || (k->users == 0 && (at < 0 || k->used < hs.kept[at]->used)))
            at = i;
    }
    if (at < 0)
        return NULL;
    old = hs.kept[at];
    hs.kept[at] = h;
    h->kept = 1;
    return old;
}

/* ---- door -------------------- */

static struct cufile_handle *handle_find(const struct stat *st)
{
    struct cufile_handle *h;

    lock_take(&cufile_handles_mutex);
    h = kept_find(st);
    lock_give(&cufile_handles_mutex);
    return h;
}

/* Two threads that open one file at once both keep their handle; one is found later. */
static void handle_keep(struct cufile_handle *h)
{
    struct cufile_handle *gone[HANDLES_KEPT + 1];
    int n;

    lock_take(&cufile_handles_mutex);
    n = kept_sweep(gone);
    gone[n] = kept_add(h);
    n += gone[n] != NULL;
    h->used = ++hs.clock;
    lock_give(&cufile_handles_mutex);
    while (n-- > 0)
        handle_close(gone[n]);
}

zarr_status cufile_handle_take(int file, int keep, struct cufile_handle **out,
                               zarr_error *err)
{
    struct cufile_handle *h;
    struct stat st;
    zarr_status status;

    *out = NULL;
    if (fstat(file, &st) != 0)
        return port_host->fail_os(err, ZARR_ERR_IO, errno, "fstat");
    h = keep ? handle_find(&st) : NULL;
    if (h) {
        *out = h;
        return ZARR_OK;
    }
    h = calloc(1, sizeof *h);
    if (!h)
        return port_host->fail(err, ZARR_ERR_NO_MEMORY, "cuda: no memory for a file");
    h->device = st.st_dev;
    h->inode = st.st_ino;
    h->users = 1;
    status = handle_open(file, keep ? O_RDONLY : O_RDWR, h, err);
    if (status != ZARR_OK) {
        handle_close(h);
        return status;
    }
    if (keep)
        handle_keep(h);
    *out = h;
    return ZARR_OK;
}

void cufile_handle_give(struct cufile_handle *h)
{
    int close_it;

    lock_take(&cufile_handles_mutex);
    close_it = --h->users == 0 && !h->kept;
    lock_give(&cufile_handles_mutex);
    if (close_it)
        handle_close(h);
}

void cufile_handles_close(void)
{
    lock_take(&cufile_handles_mutex);
    for (int i = 0; i < HANDLES_KEPT; i++) {
        if (hs.kept[i])
            handle_close(hs.kept[i]);
        hs.kept[i] = NULL;
    }
    lock_give(&cufile_handles_mutex);
}
