/*
 * unit/store/test_local.c - behaviour of directories: links, FIFOs, directories at keys,
 * temporary files, full disks, lack of descriptors, durability.
 */
#include "store_test.h"
#include "store/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

struct fixture {
    struct world w;
    int n_fds;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->n_fds = count_open_fds();
    world_init(&f->w);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;

    world_free(&f->w);
    assert_int_equal(count_open_fds(), f->n_fds);
    free(f);
    return 0;
}

static struct world *world_of(void **state)
{
    return &((struct fixture *)*state)->w;
}

static zarr_store *open_with(struct world *w, uint32_t flags, uint32_t durability,
                             uint32_t locking, uint32_t symlinks)
{
    zarr_store_options o = {.struct_size = sizeof o,
                            .flags = flags,
                            .durability = durability,
                            .locking = locking,
                            .symlinks = symlinks};

    return open_local(w, &o);
}

static zarr_status get_status(zarr_store *s, const char *key, zarr_error *err)
{
    char to[64];
    uint64_t n = sizeof to;

    return zarr_store_get(s, key, 0, to, &n, NULL, err);
}

static void write_file(const struct world *w, const char *name, const char *text)
{
    char path[256];
    int fd;

    path_in(w, path, sizeof path, name);
    fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0666);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static bool exists(const struct world *w, const char *name)
{
    char path[256];
    struct stat st;

    path_in(w, path, sizeof path, name);
    return lstat(path, &st) == 0;
}

static void make_dir(const struct world *w, const char *name)
{
    char path[256];

    path_in(w, path, sizeof path, name);
    assert_int_equal(mkdir(path, 0777), 0);
}

static void make_link(const struct world *w, const char *to, const char *name)
{
    char path[256];

    path_in(w, path, sizeof path, name);
    assert_int_equal(symlink(to, path), 0);
}

/* ---- opening ---- */

static void opening(void **state)
{
    struct world *w = world_of(state);
    zarr_store_options o = {.struct_size = sizeof o};
    zarr_store *s = NULL;
    zarr_error err = {0};
    char path[256];

    path_in(w, path, sizeof path, "x/y/z");
    assert_status(zr_store_open(&s, w->registry, &w->env, path, &o, &err),
                  ZARR_ERR_NOT_FOUND);
    o.flags = ZARR_STORE_CREATE;
    assert_status(zr_store_open(&s, w->registry, &w->env, path, &o, &err), ZARR_OK);
    assert_string_equal(zarr_store_url(s), path);
    assert_string_equal(zr_store_name(s), "local");
    assert_status(zarr_store_close(s, &err), ZARR_OK);
    snprintf(path, sizeof path, "file://%s/x", w->dir);
    assert_status(zr_store_open(&s, w->registry, &w->env, path, NULL, &err), ZARR_OK);
    zarr_store_free(s);
    write_file(w, "f", "1");
    path_in(w, path, sizeof path, "f");
    assert_status(zr_store_open(&s, w->registry, &w->env, path, NULL, &err),
                  ZARR_ERR_INVALID);
    path_in(w, path, sizeof path, "f/g");
    assert_true(zr_store_open(&s, w->registry, &w->env, path, &o, &err) != ZARR_OK);
    o.durability = 9;
    assert_status(zr_store_open(&s, w->registry, &w->env, w->dir, &o, &err),
                  ZARR_ERR_INVALID);
    o.durability = 0;
    o.flags = 0x80;
    assert_status(zr_store_open(&s, w->registry, &w->env, w->dir, &o, &err),
                  ZARR_ERR_INVALID);
    o.flags = 0;
    o.kind = "none";
    assert_status(zr_store_open(&s, w->registry, &w->env, w->dir, &o, &err),
                  ZARR_ERR_UNSUPPORTED);
    o.kind = "local";
    assert_status(zr_store_open(&s, w->registry, &w->env, w->dir, &o, &err), ZARR_OK);
    zarr_store_free(s);
    assert_status(zr_store_open(&s, w->registry, &w->env, "s3://b/k", NULL, &err),
                  ZARR_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "s3"));
    assert_status(zr_store_open(&s, w->registry, &w->env, "file://", NULL, &err),
                  ZARR_ERR_INVALID);
    assert_status(zr_store_open(&s, w->registry, &w->env, "", NULL, &err),
                  ZARR_ERR_INVALID);
}

static void read_only(void **state)
{
    struct world *w = world_of(state);
    zarr_store *s = open_with(w, ZARR_STORE_READ_ONLY, 0, 0, 0);
    zarr_error err = {0};
    void *lock = NULL;

    write_file(w, "v", "1");
    assert_string_equal(get_text(s, "v"), "1");
    assert_status(put_text(s, "v", "2"), ZARR_ERR_INVALID);
    assert_status(zarr_store_erase(s, "v", &err), ZARR_ERR_INVALID);
    assert_status(zarr_store_erase_prefix(s, "", &err), ZARR_ERR_INVALID);
    assert_status(zarr_store_clean(s, "", 0, NULL, &err), ZARR_ERR_INVALID);
    assert_status(zr_store_lock(s, "v", NULL, &lock, &err), ZARR_ERR_INVALID);
    assert_false(zr_store_can(s, ZARR_STORE_CAP_WRITE));
    assert_true(zr_store_is_read_only(s));
    assert_status(zarr_store_close(s, &err), ZARR_OK);
}

/* ---- other file types at a key ---- */

static void not_a_value(void **state)
{
    struct world *w = world_of(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    zarr_error err = {0};
    char path[256];
    int fd;

    make_dir(w, "dir");
    write_file(w, "dir/v", "1");
    path_in(w, path, sizeof path, "fifo");
    assert_int_equal(mkfifo(path, 0666), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", w->dir);
    fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_status(get_status(s, "dir", &err), ZARR_ERR_IO);
    assert_int_equal(err.os_code, EISDIR);
    assert_status(put_text(s, "dir", "x"), ZARR_ERR_IO);
    assert_status(zarr_store_erase(s, "dir", &err), ZARR_ERR_IO);
    assert_status(get_status(s, "fifo", &err), ZARR_ERR_IO);
    assert_non_null(strstr(err.message, "FIFO"));
    assert_status(get_status(s, "socket", &err), ZARR_ERR_IO);
    assert_status(get_status(s, "dir/v/below", &err), ZARR_ERR_IO);
    assert_status(put_text(s, "dir/v/below", "x"), ZARR_ERR_IO);
    assert_string_equal(get_text(s, "dir/v"), "1");
    assert_false(exists(w, "dir.__lock")); /* a failed call leaves nothing behind */
    if (geteuid() == 0) {
        path_in(w, path, sizeof path, "zero");
        if (mknod(path, S_IFCHR | 0666, (1 << 8) | 5) == 0) {
            zarr_status st = get_status(s, "zero", &err);

            assert_status(st, ZARR_ERR_IO);
        }
    }
    close(fd);
    zarr_store_free(s);
}

static void reserved_names(void **state)
{
    static const char *const names[] = {
        "v.__lock",
        "a.__lock/v",
        ".zarrc-tmp-1-2",
        "a/.zarrc-tmp-/v",
        "v.0123456789abcdef0123456789abcdef.partial",
    };
    struct world *w = world_of(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);

    for (size_t i = 0; i < ZR_COUNT(names); i++)
        assert_status(put_text(s, names[i], "x"), ZARR_ERR_INVALID);
    zarr_store_free(s);
}

/* ---- links ---- */

/* qemu's user mode does not support openat2(). Another test covers that case. */
static void needs_openat2(struct world *w)
{
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    const bool has = ((const struct zr_local *)s->self)->has_openat2;

    zarr_store_free(s);
    if (has)
        return;
    print_message("skipped: no openat2() here\n");
    skip();
}

static void links(void **state)
{
    struct world *w = world_of(state);
    zarr_store *within, *deny, *follow;
    zarr_error err = {0};
    char absolute[256];

    needs_openat2(w);
    make_dir(w, "in");
    make_dir(w, "deep");
    write_file(w, "in/v", "inside");
    make_link(w, "in/v", "value");
    make_link(w, "in", "dir");
    make_link(w, "../in", "deep/up");
    make_link(w, "/etc/passwd", "out");
    make_link(w, "/etc", "etc");
    make_link(w, "../../../etc/passwd", "climb");
    make_link(w, "nowhere", "dangling");
    make_link(w, "loop", "loop");
    make_link(w, "/proc/self/root", "magic");
    path_in(w, absolute, sizeof absolute, "in/v");
    make_link(w, absolute, "absolute");
    within = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    deny = open_with(w, 0, ZARR_DURABILITY_NONE, 0, ZARR_SYMLINKS_DENY);
    follow = open_with(w, 0, ZARR_DURABILITY_NONE, 0, ZARR_SYMLINKS_FOLLOW);
    assert_string_equal(get_text(within, "value"), "inside");
    assert_string_equal(get_text(within, "dir/v"), "inside");
    assert_string_equal(get_text(within, "deep/up/v"), "inside");
    assert_status(get_status(within, "out", &err), ZARR_ERR_IO);
    assert_int_equal(err.os_code, EXDEV);
    assert_status(get_status(within, "etc/passwd", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "climb", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "magic/etc/passwd", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "loop", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "etc/none", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "dir/none", &err), ZARR_ERR_NOT_FOUND);
    assert_status(get_status(within, "dir/v/none", &err), ZARR_ERR_IO);
    assert_status(put_text(within, "etc/zarrc-test", "x"), ZARR_ERR_IO);
    assert_status(put_text(within, "climb", "mine"),
                  ZARR_OK); /* replaces the link itself */
    assert_string_equal(get_text(within, "climb"), "mine");

    assert_status(get_status(deny, "value", &err), ZARR_ERR_IO);
    assert_status(get_status(deny, "dir/v", &err), ZARR_ERR_IO);
    assert_status(put_text(deny, "dir/w", "x"), ZARR_ERR_IO);
    assert_string_equal(get_text(deny, "in/v"), "inside");

    assert_status(get_status(follow, "out", &err), ZARR_OK);
    assert_string_equal(get_text(follow, "absolute"), "inside");
    assert_status(get_status(follow, "etc/no-such-file", &err), ZARR_ERR_NOT_FOUND);

    /* A dangling link is not a missing key: the disk with its target may be
     * unmounted. */
    assert_status(get_status(within, "dangling", &err), ZARR_ERR_IO);
    assert_status(get_status(within, "dangling/v", &err), ZARR_ERR_IO);
    assert_status(get_status(follow, "dangling", &err), ZARR_ERR_IO);
    assert_status(put_text(within, "dangling/v", "x"), ZARR_ERR_IO);
    assert_status(get_status(within, "none", &err), ZARR_ERR_NOT_FOUND);
    assert_status(put_text(within, "dir/w", "through"), ZARR_OK);
    assert_string_equal(get_text(deny, "in/w"), "through");

    /* Erasing never follows a link. */
    assert_status(zarr_store_erase_prefix(within, "deep", &err), ZARR_OK);
    assert_false(exists(w, "deep"));
    assert_string_equal(get_text(within, "in/v"), "inside");
    zarr_store_free(within);
    zarr_store_free(deny);
    zarr_store_free(follow);
}

/* A kernel without openat2(): paths are opened component by component, and "within"
 * refuses every link. */
static void links_without_openat2(void **state)
{
    struct world *w = world_of(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0), *follow;
    zarr_error err = {0};

    ((struct zr_local *)s->self)->has_openat2 = false;
    assert_status(put_text(s, "a/b/v", "1"), ZARR_OK);
    assert_string_equal(get_text(s, "a/b/v"), "1");
    make_link(w, "a", "dir");
    make_link(w, "a/b/v", "value");
    make_link(w, "nowhere", "dangling");
    assert_status(get_status(s, "dir/b/v", &err), ZARR_ERR_IO);
    assert_status(get_status(s, "value", &err), ZARR_ERR_IO);
    assert_status(get_status(s, "dangling", &err), ZARR_ERR_IO);
    assert_status(put_text(s, "dir/b/w", "1"), ZARR_ERR_IO);
    assert_status(get_status(s, "a/none/v", &err), ZARR_ERR_NOT_FOUND);
    assert_status(get_status(s, "a/b/v/below", &err), ZARR_ERR_IO);
    assert_status(get_status(s, "a/b", &err), ZARR_ERR_IO);
    assert_status(zarr_store_erase_prefix(s, "a", &err), ZARR_OK);
    assert_false(exists(w, "a"));
    zarr_store_free(s);
    write_file(w, "real", "2");
    make_link(w, "real", "link");
    follow = open_with(w, 0, ZARR_DURABILITY_NONE, 0, ZARR_SYMLINKS_FOLLOW);
    ((struct zr_local *)follow->self)->has_openat2 = false;
    assert_string_equal(get_text(follow, "link"), "2");
    assert_status(get_status(follow, "dangling", &err), ZARR_ERR_IO);
    assert_status(get_status(follow, "none", &err), ZARR_ERR_NOT_FOUND);
    zarr_store_free(follow);
}

/* ---- listing ---- */

enum {
    ROWS_BYTES = 8192
};

static int append_row(void *user, const zarr_store_item *item)
{
    char *text = user;
    size_t n = strlen(text);

    snprintf(text + n, ROWS_BYTES - n, "%s%s", item->key, item->is_prefix ? "/ " : " ");
    return 0;
}

static const char *rows(zarr_store *s, const char *prefix, uint32_t how)
{
    static char text[ROWS_BYTES];
    zarr_error err = {0};

    text[0] = '\0';
    assert_status(zarr_store_list(s, prefix, how, append_row, text, &err), ZARR_OK);
    return text;
}

#define PARTIAL "zarr.0123456789abcdef0123456789abcdef.partial"

static void listing_and_cleaning(void **state)
{
    struct world *w = world_of(state);
    zarr_store *s = NULL;
    zarr_error err = {0};
    char temp[64], path[256];
    uint64_t n = 99;
    void *lock = NULL;

    needs_openat2(w);
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    make_dir(w, "b");
    make_dir(w, "b/c");
    make_dir(w, "empty");
    write_file(w, "zarr.json", "");
    write_file(w, "b/c/10", "");
    write_file(w, "b/c/9", "");
    write_file(w, "b/zarr.json", "");
    write_file(w, "b/\xff", "");
    make_link(w, "../empty", "b/aside");
    make_link(w, "/etc", "b/etc");
    path_in(w, path, sizeof path, "b/fifo");
    assert_int_equal(mkfifo(path, 0666), 0);
    assert_string_equal(rows(s, "", 0),
                        "b/c/10 b/c/9 b/etc b/fifo b/zarr.json zarr.json ");
    assert_string_equal(rows(s, "b", ZARR_LIST_DIRECTORY),
                        "b/aside/ b/c/ b/etc b/fifo b/zarr.json ");
    assert_string_equal(rows(s, "b/c", ZARR_LIST_DIRECTORY), "b/c/10 b/c/9 ");
    assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");

    snprintf(temp, sizeof temp, "b/.zarrc-tmp-%d-0", getpid());
    write_file(w, temp, "alive");
    write_file(w, "b/.zarrc-tmp-999999999-0", "dead");
    write_file(w, "b/c/9.__lock", "left behind");
    write_file(w, "b/" PARTIAL, "");
    assert_status(zr_store_lock(s, "b/c/10", NULL, &lock, &err), ZARR_OK);
    assert_string_equal(rows(s, "", 0),
                        "b/c/10 b/c/9 b/etc b/fifo b/zarr.json zarr.json ");
    assert_status(zarr_store_clean(s, "", 3600, &n, &err), ZARR_OK);
    assert_int_equal(n, 0); /* all are too young */
    assert_status(zarr_store_clean(s, "b", 0, &n, &err), ZARR_OK);
    assert_int_equal(n, 3);
    assert_true(exists(w, temp) && exists(w, "b/c/10.__lock"));
    assert_false(exists(w, "b/c/9.__lock"));
    zr_store_unlock(s, lock);
    assert_false(exists(w, "b/c/10.__lock"));
    assert_true(strstr(rows(s, "", ZARR_LIST_DEBRIS), temp) != NULL);
    assert_status(zarr_store_erase_prefix(s, "b/c", &err), ZARR_OK);
    assert_false(exists(w, "b/c"));
    zarr_store_free(s);
}

static void assert_ring(zarr_store *s, const char *prefix, uint32_t how, const char *link)
{
    char text[ROWS_BYTES] = "", want[128];
    zarr_error err = {0};

    assert_status(zarr_store_list(s, prefix, how, append_row, text, &err), ZARR_ERR_IO);
    assert_int_equal(err.os_code, ELOOP);
    snprintf(want, sizeof want, "%s: this symbolic link leads to a directory above it",
             link);
    if (!strstr(err.message, want))
        fail_msg("%s", err.message);
}

/* Following a link to a directory above it would never end. */
static void rings_of_links(void **state)
{
    struct world *w = world_of(state);
    zarr_error err = {0};
    zarr_store *s;
    uint64_t n = 0;

    needs_openat2(w);
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    make_dir(w, "b");
    make_dir(w, "b/c");
    make_dir(w, "x");
    write_file(w, "b/c/9", "");
    make_link(w, "../..", "b/c/root");
    assert_ring(s, "", 0, "b/c/root");
    assert_ring(s, "b", 0, "b/c/root"); /* above the prefix as well */
    assert_ring(s, "b/c", ZARR_LIST_DIRECTORY, "b/c/root");
    assert_string_equal(rows(s, "b", ZARR_LIST_DIRECTORY), "b/c/ ");
    /* What removes does not follow links. */
    assert_string_equal(rows(s, "", ZARR_LIST_UNLINKED), "b/c/9 b/c/root ");
    assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
    assert_status(zarr_store_clean(s, "", 0, &n, &err), ZARR_OK);
    assert_status(zarr_store_erase_prefix(s, "b/c", &err), ZARR_OK);
    assert_true(exists(w, "x") && !exists(w, "b/c"));
    make_link(w, ".", "b/self");
    assert_ring(s, "", 0, "b/self");
    assert_ring(s, "b", ZARR_LIST_DIRECTORY, "b/self");
    assert_status(zarr_store_erase_prefix(s, "b/self", &err), ZARR_OK);
    /* x/a -> real/a, real/a/up -> real: real/a is again below x/a/up, by its own name. */
    make_dir(w, "real");
    make_dir(w, "real/a");
    make_link(w, "../real/a", "x/a");
    make_link(w, "../../real", "real/a/up");
    assert_ring(s, "x", 0, "x/a/up");
    zarr_store_free(s);
}

static int count_rows(void *user, const zarr_store_item *item)
{
    (void)item;
    ++*(int *)user;
    return 0;
}

/* Removes nested directories named "a", and a file "v" in one of them. Each step moves
 * the next one up, so that no path is long. */
static void remove_deep(const struct world *w)
{
    int root = open(w->dir, O_RDONLY), top;

    for (;;) {
        top = openat(root, "a", O_RDONLY | O_DIRECTORY);
        if (top < 0)
            break;
        (void)unlinkat(top, "v", 0);
        (void)renameat(top, "a", root, "b");
        close(top);
        assert_int_equal(unlinkat(root, "a", AT_REMOVEDIR), 0);
        (void)renameat(root, "b", root, "a");
    }
    close(root);
}

/* Nothing is left out of a listing or a deletion because it is deep: it is listed, or the
 * limit is an error. */
static void deep_directories(void **state)
{
    static char key[PATH_MAX + 8];
    struct world *w = world_of(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    zarr_error err = {0};
    int n = 0, dir, next;

    for (size_t i = 0; i < 2046; i++)
        memcpy(key + 2 * i, "a/", 2);
    strcpy(key + 2 * 2046, "v");
    assert_status(put_text(s, key, "1"), ZARR_OK);
    assert_status(zarr_store_list(s, "", 0, count_rows, &n, &err), ZARR_OK);
    assert_int_equal(n, 1);
    /* Deeper than a path can name. */
    dir = open(w->dir, O_RDONLY);
    for (int i = 0; i < 2060; i++) {
        (void)mkdirat(dir, "a", 0777);
        next = openat(dir, "a", O_RDONLY);
        assert_true(next >= 0);
        close(dir);
        dir = next;
    }
    close(dir);
    assert_status(zarr_store_list(s, "", 0, count_rows, &n, &err), ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "at most 4095 bytes"));
    assert_status(zarr_store_erase_prefix(s, "a", &err), ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "at most 4095 bytes"));
    remove_deep(w);
    zarr_store_free(s);
}

/* 8 directories with 8 links each to the next one: 8^8 paths, but no ring. */
static void links_that_multiply(void **state)
{
    struct world *w = world_of(state);
    char to[32], name[32], text[ROWS_BYTES] = "";
    zarr_error err = {0};
    zarr_store *s;

    needs_openat2(w);
    for (int i = 0; i < 9; i++) {
        snprintf(name, sizeof name, "g%d", i);
        make_dir(w, name);
        snprintf(to, sizeof to, "../g%d", i + 1);
        for (int k = 0; k < 8 && i < 8; k++) {
            snprintf(name, sizeof name, "g%d/l%d", i, k);
            make_link(w, to, name);
        }
    }
    write_file(w, "g8/v", "");
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    assert_status(zarr_store_list(s, "g1", 0, append_row, text, &err), ZARR_ERR_LIMIT);
    assert_non_null(strstr(err.message, "more than 65536 directories behind symbolic"));
    assert_non_null(strstr(err.message, "limit linked_directories"));
    text[0] = '\0';
    assert_status(zarr_store_list(s, "g6", 0, append_row, text, &err), ZARR_OK);
    zarr_store_free(s);
    w->env.limits.linked_directories = 8 + 64;
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    assert_status(zarr_store_list(s, "g6", 0, append_row, text, &err), ZARR_OK);
    zarr_store_free(s);
    w->env.limits.linked_directories--;
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    assert_status(zarr_store_list(s, "g6", 0, append_row, text, &err), ZARR_ERR_LIMIT);
    zarr_store_free(s);
}

/* ---- system errors ---- */

static void no_descriptors(void **state)
{
    struct world *w = world_of(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    struct rlimit old, low;
    zarr_error err = {0};

    assert_status(put_text(s, "a/v", "1"), ZARR_OK);
    getrlimit(RLIMIT_NOFILE, &old);
    for (rlim_t n = 3; n < 12; n++) { /* at each step of a read or a write */
        zarr_status st;

        low = (struct rlimit){n, old.rlim_max};
        setrlimit(RLIMIT_NOFILE, &low);
        st = get_status(s, "a/v", &err);
        assert_true(st == ZARR_OK || (st == ZARR_ERR_IO && err.os_code == EMFILE));
        st = put_text(s, "a/v", "1");
        assert_true(st == ZARR_OK || st == ZARR_ERR_IO);
        st = zarr_store_list(s, "", 0, append_row, (char[ROWS_BYTES]){0}, &err);
        assert_true(st == ZARR_OK || st == ZARR_ERR_IO);
        st = zarr_store_erase(s, "a/none", &err);
        assert_true(st == ZARR_ERR_NOT_FOUND || st == ZARR_ERR_IO);
        setrlimit(RLIMIT_NOFILE, &old);
    }
    assert_string_equal(get_text(s, "a/v"), "1");
    zarr_store_free(s);
}

static void file_too_large(void **state)
{
    struct world *w = world_of(state);
    struct rlimit old, low;
    static char big[3 << 20];
    zarr_error err = {0};

    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    for (uint32_t locking = ZARR_LOCKING_OS; locking <= ZARR_LOCKING_NONE; locking++) {
        zarr_store *s = open_with(w, 0, 0, locking, 0);

        assert_status(put_text(s, "v", "old"), ZARR_OK);
        low = (struct rlimit){100000, old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &low);
        assert_status(zarr_store_put(s, "v", big, sizeof big, &err), ZARR_ERR_IO);
        assert_int_equal(err.os_code, EFBIG);
        assert_int_equal(err.os_domain, ZARR_OS_ERRNO);
        assert_status(zarr_store_put(s, "v", big, 200000, &err), ZARR_ERR_IO);
        setrlimit(RLIMIT_FSIZE, &old);
        assert_string_equal(get_text(s, "v"), "old");
        assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
        zarr_store_free(s);
    }
    signal(SIGXFSZ, SIG_DFL);
}

static void disk_full(void **state)
{
    struct world *w = world_of(state);
    static char big[100000];
    zarr_error err = {0};
    zarr_store *s;

    if (geteuid() != 0 || mount("none", w->dir, "tmpfs", 0, "size=256k") != 0) {
        print_message("skipped: a small file system needs the right to mount one\n");
        skip();
    }
    for (uint32_t locking = ZARR_LOCKING_OS; locking <= ZARR_LOCKING_NONE; locking++) {
        s = open_with(w, 0, 0, locking, 0);
        assert_status(put_text(s, "v", "old"), ZARR_OK);
        assert_status(zarr_store_put(s, "a", big, sizeof big, &err), ZARR_OK);
        assert_status(zarr_store_put(s, "b", big, sizeof big, &err), ZARR_OK);
        assert_status(zarr_store_put(s, "v", big, sizeof big, &err), ZARR_ERR_IO);
        assert_int_equal(err.os_code, ENOSPC);
        assert_non_null(strstr(err.message, w->dir));
        assert_string_equal(get_text(s, "v"), "old");
        assert_string_equal(rows(s, "", ZARR_LIST_DEBRIS), "");
        assert_status(zarr_store_erase_prefix(s, "", &err), ZARR_OK);
        assert_status(zarr_store_put(s, "v", big, sizeof big, &err), ZARR_OK);
        assert_status(zarr_store_close(s, &err), ZARR_OK);
    }
    assert_int_equal(umount(w->dir), 0);
}

/* ---- durability, descriptors 0 to 2 ---- */

static void durabilities(void **state)
{
    struct world *w = world_of(state);
    zarr_error err = {0};

    for (uint32_t d = ZARR_DURABILITY_DEFAULT; d <= ZARR_DURABILITY_EACH; d++) {
        for (uint32_t locking = ZARR_LOCKING_OS; locking <= ZARR_LOCKING_NONE;
             locking++) {
            zarr_store *s = open_with(w, 0, d, locking, 0);

            assert_status(put_text(s, "d/e/f/v", "1"), ZARR_OK);
            assert_status(put_text(s, "d/e/f/v", "2"), ZARR_OK);
            assert_string_equal(get_text(s, "d/e/f/v"), "2");
            assert_status(zarr_store_erase(s, "d/e/f/v", &err), ZARR_OK);
            assert_status(zarr_store_flush(s, &err), ZARR_OK);
            assert_status(zarr_store_flush(s, &err), ZARR_OK);
            assert_status(zarr_store_erase_prefix(s, "", &err), ZARR_OK);
            assert_status(zarr_store_close(s, &err), ZARR_OK);
        }
    }
}

/* In a child whose descriptors 0 to 2 are closed. No file of the store may get one of
 * these numbers. */
static void low_descriptors(void **state)
{
    struct world *w = world_of(state);
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        struct stat st;
        zarr_store *s;
        int bad = 0;
        void *lock = NULL;

        for (int fd = 0; fd < 3; fd++)
            close(fd);
        s = open_with(w, 0, ZARR_DURABILITY_EACH, 0, 0);
        bad |= zr_store_lock(s, "x/y", NULL, &lock, NULL) != ZARR_OK;
        for (int fd = 0; fd < 3; fd++)
            bad |= fstat(fd, &st) == 0;
        bad |= put_text(s, "v", "1") != ZARR_OK || !get_text(s, "v");
        _exit(bad);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
}

/* A store opened before a fork works in the child, and the end of the child does not
 * release the parent's lock. */
static void fork_with_lock(void **state)
{
    struct world *w = world_of(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT, .flags = ZARR_STORE_OP_LOCKED, .key = "v"};
    int status = 0;
    void *lock = NULL;
    zarr_error err = {0};
    pid_t pid;

    assert_status(put_text(s, "w", "1"), ZARR_OK);
    assert_status(zr_store_lock(s, "v", NULL, &lock, &err), ZARR_OK);
    op.lock = lock;
    op.mem = zr_mem_of_host("x", 1);
    pid = fork();
    if (pid == 0) {
        int bad = zr_store_run_one(s, &op, NULL) != ZARR_ERR_INVALID;

        bad |= put_text(s, "w", "2") != ZARR_OK;
        zr_store_unlock(s, lock);
        _exit(bad);
    }
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    assert_true(exists(w, "v.__lock"));
    assert_string_equal(get_text(s, "w"), "2");
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_INVALID); /* used up */
    zr_store_unlock(s, lock);
    zarr_store_free(s);
}

/* The next request sees a replaced file. A pin keeps the old one. */
static void replaced_by_others(void **state)
{
    struct world *w = world_of(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    zarr_store_op op;
    struct zr_store_pin pin;
    zarr_error err = {0};
    char from[256], to[256], bytes[8];

    write_file(w, "v", "old");
    write_file(w, "new", "newer");
    assert_status(zr_store_pin_init(&pin, s, "v", &err), ZARR_OK);
    path_in(w, from, sizeof from, "new");
    path_in(w, to, sizeof to, "v");
    assert_int_equal(rename(from, to), 0);
    assert_string_equal(get_text(s, "v"), "newer");
    op = get_op("v", 0, ZARR_STORE_TO_END, bytes, sizeof bytes);
    op.flags = ZR_STORE_OP_PINNED;
    op.lock = &pin;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
    assert_true(op.done_bytes == 3 && memcmp(bytes, "old", 3) == 0);
    zr_store_pin_deinit(&pin);
    assert_status(zr_store_pin_init(&pin, s, "v", &err), ZARR_OK);
    /* Shortened in place, as some writers do: reported, not padded. */
    write_file(w, "v", "n");
    op = get_op("v", 0, 5, bytes, sizeof bytes);
    op.flags = ZR_STORE_OP_PINNED;
    op.lock = &pin;
    assert_status(zr_store_run_one(s, &op, &err), ZARR_ERR_CONFLICT);
    zr_store_pin_deinit(&pin);
    zarr_store_free(s);
}

enum {
    MANY_PINS = 100
};

static zarr_store_op pinned_op(struct zr_store_pin *pin, char *bytes, uint64_t n)
{
    zarr_store_op op = get_op(pin->key, 0, ZARR_STORE_TO_END, bytes, n);

    op.flags = ZR_STORE_OP_PINNED;
    op.lock = pin;
    return op;
}

/* More pins than descriptors: those without one compare versions. */
static void more_pins_than_descriptors(void **state)
{
    struct world *w = world_of(state);
    zarr_store *s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, 0);
    const int before = count_open_fds();
    static struct zr_store_pin pin[MANY_PINS];
    struct rlimit old, few;
    zarr_error err = {0};
    char bytes[8];

    write_file(w, "v", "old");
    write_file(w, "gone", "old");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    few = old;
    few.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < MANY_PINS; i++) {
        zarr_status st = zr_store_pin_init(&pin[i], s, i % 2 ? "gone" : "v", &err);

        if (st != ZARR_OK)
            fail_msg("pin %d: %s", i, err.message);
    }
    assert_int_equal(count_open_fds(), before + 16); /* one quarter of them */
    for (int i = 0; i < MANY_PINS; i++) {
        zarr_store_op op = pinned_op(&pin[i], bytes, sizeof bytes);

        assert_status(zr_store_run_one(s, &op, &err), ZARR_OK);
        assert_true(op.done_bytes == 3 && memcmp(bytes, "old", 3) == 0);
    }
    assert_status(put_text(s, "v", "new"), ZARR_OK);
    assert_status(zarr_store_erase(s, "gone", &err), ZARR_OK);
    for (int i = 0; i < MANY_PINS; i++) {
        zarr_store_op op = pinned_op(&pin[i], bytes, sizeof bytes);

        assert_status(zr_store_run_one(s, &op, &err),
                      i < 16 ? ZARR_OK : ZARR_ERR_CONFLICT);
        if (i >= 16)
            assert_non_null(strstr(err.message, i % 2 ? "deleted" : "replaced"));
    }
    for (int i = 0; i < MANY_PINS; i++)
        zr_store_pin_deinit(&pin[i]);
    assert_int_equal(count_open_fds(), before);
    /* All descriptors were given back. */
    assert_status(zr_store_pin_init(&pin[0], s, "v", &err), ZARR_OK);
    assert_int_equal(count_open_fds(), before + 1);
    zr_store_pin_deinit(&pin[0]);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    zarr_store_free(s);
}

#define T(f)                                                                             \
    {                                                                                    \
#        f, f, setup, teardown, NULL                                                     \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(opening),
        T(read_only),
        T(not_a_value),
        T(reserved_names),
        T(links),
        T(links_without_openat2),
        T(listing_and_cleaning),
        T(rings_of_links),
        T(deep_directories),
        T(links_that_multiply),
        T(no_descriptors),
        T(more_pins_than_descriptors),
        T(file_too_large),
        T(disk_full),
        T(durabilities),
        T(low_descriptors),
        T(fork_with_lock),
        T(replaced_by_others),
    };

    return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
