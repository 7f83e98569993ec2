/*
 * unit/store/local_test.h - helpers of the tests of directories: a directory for each
 * test, files, folders and links in it, and lists of keys as text.
 */
#ifndef ZR_LOCAL_TEST_H
#define ZR_LOCAL_TEST_H

#include "store_test.h"
#include "store/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
    struct world w;
    int n_fds;
};

static inline int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->n_fds = count_open_fds();
    world_init(&f->w);
    *state = f;
    return 0;
}

static inline int teardown(void **state)
{
    struct fixture *f = *state;

    world_free(&f->w);
    assert_int_equal(count_open_fds(), f->n_fds);
    free(f);
    return 0;
}

static inline struct world *fixture_world(void **state)
{
    return &((struct fixture *)*state)->w;
}

static inline zarr_store *open_with(struct world *w, uint32_t flags, uint32_t durability,
                                    uint32_t locks, uint32_t symlinks)
{
    zarr_store_options o = {.struct_size = sizeof o,
                            .flags = flags,
                            .durability = durability,
                            .locks = locks,
                            .symlinks = symlinks};

    return open_local(w, &o);
}

static inline zarr_status get_status(zarr_store *s, const char *key, zarr_error *err)
{
    char to[64];
    uint64_t n = sizeof to;

    return zarr_store_get(s, key, 0, to, &n, NULL, err);
}

static inline void write_file(const struct world *w, const char *name, const char *text)
{
    char path[256];
    int fd;

    path_in(w, path, sizeof path, name);
    fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static inline bool exists(const struct world *w, const char *name)
{
    char path[256];
    struct stat st;

    path_in(w, path, sizeof path, name);
    return lstat(path, &st) == 0;
}

static inline void make_dir(const struct world *w, const char *name)
{
    char path[256];

    path_in(w, path, sizeof path, name);
    assert_int_equal(mkdir(path, 0777), 0);
}

static inline void make_link(const struct world *w, const char *to, const char *name)
{
    char path[256];

    path_in(w, path, sizeof path, name);
    assert_int_equal(symlink(to, path), 0);
}

/* qemu's user mode does not support openat2(). Another test covers that case. */
static inline void needs_openat2(struct world *w)
{
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    const bool has = ((const struct zr_local *)s->self)->has_openat2;

    zarr_store_free(s);
    if (has)
        return;
    print_message("skipped: no openat2() here\n");
    skip();
}

enum {
    ROWS_BYTES = 8192
};

static inline int append_row(void *user, const zarr_store_item *item)
{
    char *text = user;
    size_t n = strlen(text);

    snprintf(text + n, ROWS_BYTES - n, "%s%s", item->key, item->is_prefix ? "/ " : " ");
    return 0;
}

static inline const char *rows(zarr_store *s, const char *prefix, uint32_t how)
{
    static char text[ROWS_BYTES];
    zarr_error err = {0};

    text[0] = '\0';
    assert_status(zarr_store_list(s, prefix, how, append_row, text, NULL, &err), ZARR_OK);
    return text;
}

#define T(f)                                                                             \
    {                                                                                    \
#        f, f, setup, teardown, NULL                                                     \
    }

#endif
