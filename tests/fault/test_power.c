/*
 * fault/test_power.c - what a local store keeps through a loss of power. The functions
 * below replace those of the C library and write a log: names that come and go, bytes
 * that are written, syncs. Then the machine stops after each entry of the log. All
 * changes of names up to there survive, as with a journal, but only those bytes of a file
 * that were synced. No object that the durability promises to keep may be cut off then.
 * At the places where the durability promises that all is on the disk, even unsynced
 * names are dropped. An append promises so before it replaces the array's document, and a
 * shrink before it erases the record of leftovers.
 */
#include "fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    N_OPS = 20000,
    N_FILES = 4000,
    TOP = 1, /* the number of the directory that was there before */
    NAME_BYTES = 96
};

enum kind {
    OP_NAME,   /* `name` in `dir` is `file` from now on; file 0: it is gone */
    OP_RENAME, /* `name` in `dir` becomes `other` in the same directory */
    OP_WRITE,
    OP_EMPTY,
    OP_SYNC,     /* of one file, or of the names in one directory */
    OP_SYNC_ALL, /* of the file system */
    OP_MARK      /* the durability promises that all of the above is on the disk */
};

struct op {
    enum kind kind;
    int dir, file;
    char name[NAME_BYTES], other[NAME_BYTES];
    uint64_t at;
    size_t n;
    unsigned char *bytes;
};

static struct {
    pthread_mutex_t mutex;
    bool on;
    const char *put, *erase; /* a mark comes before this name is written, or erased */
    struct op op[N_OPS];
    size_t n;
    ino_t inode[N_FILES]; /* of file 1, 2, ...; 0: the number has another file now */
    bool is_directory[N_FILES];
    int n_files;
} tape = {.mutex = PTHREAD_MUTEX_INITIALIZER};

/* The C library's own function of this name; the cast is POSIX's way to say it. */
#define REAL(type, name, params)                                                         \
    static type(*real_##name) params;                                                    \
    if (!real_##name)                                                                    \
    *(void **)(&real_##name) = dlsym(RTLD_NEXT, #name)

/* ---- the log ------------------------------------------------------------- */

static struct op *add_op(enum kind kind)
{
    struct op *op = &tape.op[tape.n++];

    if (tape.n == N_OPS)
        abort();
    *op = (struct op){.kind = kind};
    return op;
}

static int file_of(ino_t inode)
{
    for (int i = 1; i <= tape.n_files; i++)
        if (tape.inode[i] == inode)
            return i;
    return 0;
}

/* Numbers of inodes are used again; then the old file is another one. */
static int new_file(ino_t inode)
{
    const int old = file_of(inode);

    if (old)
        tape.inode[old] = 0;
    if (++tape.n_files == N_FILES)
        abort();
    tape.inode[tape.n_files] = inode;
    tape.is_directory[tape.n_files] = false;
    return tape.n_files;
}

static int file_of_fd(int fd)
{
    struct stat st;
    int file;

    if (fstat(fd, &st) != 0)
        abort();
    file = file_of(st.st_ino);
    return file ? file : new_file(st.st_ino);
}

static void copy_name(char to[NAME_BYTES], const char *name)
{
    if (strlen(name) >= NAME_BYTES || strchr(name, '/'))
        abort();
    memcpy(to, name, strlen(name) + 1);
}

static bool begin_log(void)
{
    if (!tape.on)
        return false;
    pthread_mutex_lock(&tape.mutex);
    return true;
}

static void log_new_name(int dir, const char *name)
{
    struct stat st;
    struct op *op = add_op(OP_NAME);

    op->dir = file_of_fd(dir);
    copy_name(op->name, name);
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        abort();
    op->file = new_file(st.st_ino);
    tape.is_directory[op->file] = S_ISDIR(st.st_mode);
}

static void log_fd(enum kind kind, int fd)
{
    if (begin_log()) {
        add_op(kind)->file = file_of_fd(fd);
        pthread_mutex_unlock(&tape.mutex);
    }
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's own
 * names for them are reserved. */

int openat64(int dir, const char *path, int flags, ...)
{
    const int saved = errno;
    bool is_new = false;
    struct stat st;
    mode_t mode;
    va_list ap;
    int fd;

    REAL(int, openat64, (int, const char *, int, ...));
    va_start(ap, flags);
    mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
    va_end(ap);
    if (tape.on && flags & O_CREAT)
        is_new = fstatat(dir, path, &st, AT_SYMLINK_NOFOLLOW) != 0;
    errno = saved;
    fd = real_openat64(dir, path, flags, mode);
    if (fd >= 0 && is_new && begin_log()) {
        log_new_name(dir, path);
        pthread_mutex_unlock(&tape.mutex);
    }
    return fd;
}

static void log_promise(const char *name, const char *wanted)
{
    if (wanted && strcmp(name, wanted) == 0 && begin_log()) {
        (void)add_op(OP_MARK);
        pthread_mutex_unlock(&tape.mutex);
    }
}

int mkdirat(int dir, const char *name, mode_t mode)
{
    int st;

    REAL(int, mkdirat, (int, const char *, mode_t));
    st = real_mkdirat(dir, name, mode);
    if (st == 0 && begin_log()) {
        log_new_name(dir, name);
        pthread_mutex_unlock(&tape.mutex);
    }
    return st;
}

int mkdir(const char *path, mode_t mode)
{
    int st;

    REAL(int, mkdir, (const char *, mode_t));
    st = real_mkdir(path, mode);
    if (st == 0 && begin_log()) {
        const char *slash = strrchr(path, '/');
        char parent[512];
        int dir;

        snprintf(parent, sizeof parent, "%.*s", (int)(slash - path), path);
        dir = open(parent, O_RDONLY | O_DIRECTORY);
        if (dir < 0)
            abort();
        log_new_name(dir, slash + 1);
        close(dir);
        pthread_mutex_unlock(&tape.mutex);
    }
    return st;
}

int renameat(int from_dir, const char *from, int to_dir, const char *to)
{
    int st;

    REAL(int, renameat, (int, const char *, int, const char *));
    log_promise(to, tape.put);
    st = real_renameat(from_dir, from, to_dir, to);
    if (st == 0 && begin_log()) {
        struct op *op = add_op(OP_RENAME);

        op->dir = file_of_fd(from_dir);
        if (file_of_fd(to_dir) != op->dir)
            abort();
        copy_name(op->name, from);
        copy_name(op->other, to);
        pthread_mutex_unlock(&tape.mutex);
    }
    return st;
}

int unlinkat(int dir, const char *name, int flags)
{
    int st;

    REAL(int, unlinkat, (int, const char *, int));
    log_promise(name, tape.erase);
    st = real_unlinkat(dir, name, flags);
    if (st == 0 && begin_log()) {
        struct op *op = add_op(OP_NAME);

        op->dir = file_of_fd(dir);
        copy_name(op->name, name);
        pthread_mutex_unlock(&tape.mutex);
    }
    return st;
}

int ftruncate64(int fd, off64_t n)
{
    REAL(int, ftruncate64, (int, off64_t));
    log_fd(OP_EMPTY, fd);
    return real_ftruncate64(fd, n);
}

/* No disk is waited for. */
int fsync(int fd)
{
    log_fd(OP_SYNC, fd);
    return 0;
}

int fdatasync(int fd)
{
    log_fd(OP_SYNC, fd);
    return 0;
}

int syncfs(int fd)
{
    log_fd(OP_SYNC_ALL, fd);
    return 0;
}

#ifdef __clang__ /* the C library declares it inline */
#    pragma clang diagnostic ignored "-Wstatic-in-inline"
#endif

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at)
{
    REAL(ssize_t, pwrite64, (int, const void *, size_t, off64_t));
    if (begin_log()) {
        struct op *op = add_op(OP_WRITE);

        op->file = file_of_fd(fd);
        op->at = (uint64_t)at;
        op->n = n;
        op->bytes = malloc(n + 1);
        if (!op->bytes)
            abort();
        memcpy(op->bytes, from, n);
        pthread_mutex_unlock(&tape.mutex);
    }
    return real_pwrite64(fd, from, n, at);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */

static void clear_tape(void)
{
    for (size_t i = 0; i < tape.n; i++)
        free(tape.op[i].bytes);
    tape.n = 0;
    tape.n_files = 0;
}

/* ---- the state after a loss of power ------------------------------------------ */

struct name {
    int dir, file; /* file 0: no such name */
    const char *name;
};
static struct {
    struct name name[N_FILES];
    size_t n;
} names;

static struct name *find_name(int dir, const char *name)
{
    for (size_t i = 0; i < names.n; i++)
        if (names.name[i].dir == dir && strcmp(names.name[i].name, name) == 0)
            return &names.name[i];
    if (names.n == N_FILES)
        abort();
    names.name[names.n] = (struct name){.dir = dir, .name = name};
    return &names.name[names.n++];
}

/* True if a sync after entry i, before entry `end`, made the names in the directory
 * durable. */
static bool name_is_synced(size_t i, size_t end)
{
    for (size_t k = i + 1; k < end; k++)
        if (tape.op[k].kind == OP_SYNC_ALL ||
            (tape.op[k].kind == OP_SYNC && tape.op[k].file == tape.op[i].dir))
            return true;
    return false;
}

static void replay_names(size_t end, bool only_synced)
{
    names.n = 0;
    for (size_t i = 0; i < end; i++) {
        const struct op *op = &tape.op[i];

        if ((op->kind != OP_NAME && op->kind != OP_RENAME) ||
            (only_synced && !name_is_synced(i, end)))
            continue;
        if (op->kind == OP_NAME) {
            find_name(op->dir, op->name)->file = op->file;
        } else {
            const int file = find_name(op->dir, op->name)->file;

            find_name(op->dir, op->name)->file = 0;
            find_name(op->dir, op->other)->file = file;
        }
    }
}

struct content {
    unsigned char bytes[8192];
    size_t n;
};

static void replay_bytes(int file, size_t end, struct content *out)
{
    out->n = 0;
    for (size_t i = 0; i < end; i++) {
        const struct op *op = &tape.op[i];

        if (op->file != file)
            continue;
        if (op->kind == OP_EMPTY)
            out->n = 0;
        if (op->kind != OP_WRITE)
            continue;
        if (op->at + op->n > sizeof out->bytes)
            abort();
        memcpy(out->bytes + op->at, op->bytes, op->n);
        if (op->at + op->n > out->n)
            out->n = op->at + op->n;
    }
}

/* Where the last sync of the file, before entry `end`, is in the log. */
static size_t last_sync(int file, size_t end)
{
    while (end > 0) {
        const struct op *op = &tape.op[--end];

        if (op->kind == OP_SYNC_ALL || (op->kind == OP_SYNC && op->file == file))
            return end;
    }
    return 0;
}

/* Objects are not changed any more once they have their key, so the whole value is all
 * that was ever written to the file. */
static bool is_whole(int file, size_t end)
{
    static struct content kept, whole;

    replay_bytes(file, last_sync(file, end), &kept);
    replay_bytes(file, tape.n, &whole);
    return kept.n == whole.n && memcmp(kept.bytes, whole.bytes, whole.n) == 0;
}

/* A file of a write that is under way. */
static bool is_working(const struct name *n)
{
    return strstr(n->name, ".__lock") || strstr(n->name, ".zarrc-tmp");
}

static bool is_value(const struct name *n)
{
    return n->file && !is_working(n) && !tape.is_directory[n->file];
}

static bool is_document(const struct name *n)
{
    static const char *const documents[] = {"zarr.json", ".zarray", ".zgroup", ".zattrs",
                                            ".zmetadata"};

    for (size_t i = 0; i < sizeof documents / sizeof documents[0]; i++)
        if (strcmp(n->name, documents[i]) == 0)
            return true;
    return false;
}

struct losses {
    int documents, chunks, promised;
};

/* The name in `names` that leads to a directory; NULL: none does. */
static const struct name *name_of(int directory)
{
    for (size_t i = 0; i < names.n; i++)
        if (names.name[i].file == directory)
            return &names.name[i];
    return NULL;
}

/* True if each directory from the top down to this one still has its name. */
static bool is_reached(int directory)
{
    for (const struct name *n; directory != TOP; directory = n->dir) {
        n = name_of(directory);
        if (!n)
            return false;
    }
    return true;
}

/* At a mark nothing may be missing, whichever names were synced. */
static int count_unsynced(size_t end)
{
    static struct name all[N_FILES];
    size_t n = 0;
    int lost = 0;

    replay_names(end, false);
    for (size_t i = 0; i < names.n; i++)
        if (!is_working(&names.name[i]) && is_reached(names.name[i].dir))
            all[n++] = names.name[i];
    replay_names(end, true);
    for (size_t i = 0; i < n; i++) {
        const struct name *now = find_name(all[i].dir, all[i].name);

        if (tape.is_directory[now->file] || tape.is_directory[all[i].file])
            continue; /* a directory without values below it is no key */
        lost += now->file != all[i].file ||
                (now->file && (!is_whole(now->file, end) || !is_reached(now->dir)));
    }
    return lost;
}

static struct losses cut_everywhere(void)
{
    struct losses sum = {0};

    for (size_t end = 1; end <= tape.n; end++) {
        replay_names(end, false);
        for (size_t i = 0; i < names.n; i++) {
            const struct name *n = &names.name[i];

            if (is_value(n) && !is_whole(n->file, end))
                ++*(is_document(n) ? &sum.documents : &sum.chunks);
        }
        if (tape.op[end - 1].kind == OP_MARK)
            sum.promised += count_unsynced(end);
    }
    return sum;
}

/* ---- what is written ------------------------------------------------------------ */

static char root[] = "/tmp/zarrc-power-XXXXXX";

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st;
    (void)type;
    (void)at;
    return remove(path);
}

static void mark(uint32_t durability, bool flushed)
{
    if (durability == ZARR_DURABILITY_EACH ||
        (flushed && durability != ZARR_DURABILITY_NONE))
        (void)add_op(OP_MARK);
}

#define MUST(call)                                                                       \
    do {                                                                                 \
        if ((call) != ZARR_OK)                                                           \
            fail_msg("%s: %s", #call, err.message);                                      \
        mark(durability, false);                                                         \
    } while (0)

static void write_array(zarr_store *store, int format, uint32_t durability)
{
    const uint64_t shape = 16, chunk = 4, less = 6;
    const int64_t n = 16;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = format,
                                  .ndim = 1,
                                  .shape = &shape,
                                  .chunk_shape = &chunk,
                                  .data_type = "int32",
                                  .attributes = "{\"a\":1}"};
    int32_t data[16];
    zarr_array *a = NULL;
    zarr_tensor t;
    zarr_error err;

    for (int i = 0; i < 16; i++)
        data[i] = i + 1;
    zarr_tensor_host(&t, data, sizeof data, 1, &n);
    MUST(zarr_array_create(&a, store, format == 2 ? "g/two" : "g/three", &spec, NULL,
                           &err));
    MUST(zarr_array_write(a, NULL, &t, NULL, &err));
    data[3] = 7;
    MUST(zarr_array_write(a, NULL, &t, NULL, &err));
    MUST(zarr_array_attribute_set(a, "b", "2", &err));
    MUST(zarr_array_append(a, 0, &t, NULL, NULL, &err));
    MUST(zarr_array_resize(a, &less, NULL, &err));
    zarr_array_free(a);
}

static void write_all(uint32_t durability, uint32_t locking)
{
    zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;
    zarr_store *store = NULL;
    zarr_group *g = NULL;
    struct world w;
    char path[64];
    zarr_error err;

    opts.flags = ZARR_STORE_CREATE;
    opts.durability = durability;
    opts.locking = locking;
    snprintf(path, sizeof path, "%s/deep/store", root);
    world_context(&w, 1);
    MUST(zarr_store_open(&store, w.ctx, path, &opts, &err));
    MUST(zarr_group_create(&g, store, "g", NULL, NULL, &err));
    write_array(store, 3, durability);
    write_array(store, 2, durability);
    MUST(zarr_group_consolidate(g, NULL, &err));
    zarr_group_free(g);
    MUST(zarr_node_delete(store, "g/two", &err));
    MUST(zarr_store_flush(store, &err));
    mark(durability, true);
    zarr_store_free(store);
    w.store = NULL;
    world_close(&w);
}

static void begin_tape(void)
{
    struct stat st;

    memcpy(root, "/tmp/zarrc-power-XXXXXX", sizeof root);
    assert_non_null(mkdtemp(root));
    assert_int_equal(stat(root, &st), 0);
    assert_int_equal(new_file(st.st_ino), TOP);
    tape.on = true;
}

static void end_tape(void)
{
    tape.on = false;
    clear_tape();
    assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static struct losses run(uint32_t durability, uint32_t locking)
{
    struct losses sum;

    begin_tape();
    write_all(durability, locking);
    tape.on = false;
    assert_true(tape.n > 100);
    sum = cut_everywhere();
    end_tape();
    return sum;
}

/* What each durability keeps, and what it does not: a test that finds no loss without
 * any sync would find none at all. */
static void test_durability(void **state)
{
    static const uint32_t locking[] = {ZARR_LOCKING_OS, ZARR_LOCKING_NONE};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        const struct losses none = run(ZARR_DURABILITY_NONE, locking[i]),
                            commit = run(ZARR_DURABILITY_COMMIT, locking[i]),
                            ordered = run(ZARR_DURABILITY_ORDERED, locking[i]),
                            each = run(ZARR_DURABILITY_EACH, locking[i]);

        assert_true(none.documents > 0 && none.chunks > 0);
        assert_int_equal(commit.documents, 0);
        assert_true(commit.chunks > 0);
        assert_int_equal(commit.promised, 0);
        assert_int_equal(ordered.documents + ordered.chunks + ordered.promised, 0);
        assert_int_equal(each.documents + each.chunks + each.promised, 0);
    }
}

/* ---- an append and a shrink, which sync what they wrote --------------------- */

enum {
    ROW = 12, /* elements, of which each chunk has 4 */
    MANY = 80 /* rows: more chunks than are synced one by one */
};

struct shape_case {
    uint32_t durability, locking;
    int format;
    zarr_store *store;
    zarr_array *a;
};

static void shape_case_open(struct shape_case *c, struct world *w)
{
    const uint64_t shape[2] = {0, ROW}, chunk[2] = {1, 4};
    zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;
    const zarr_array_spec spec = {.struct_size = sizeof spec,
                                  .zarr_format = c->format,
                                  .ndim = 2,
                                  .shape = shape,
                                  .chunk_shape = chunk,
                                  .data_type = "int32"};
    char path[64];
    zarr_error err;

    opts.flags = ZARR_STORE_CREATE;
    opts.durability = c->durability;
    opts.locking = c->locking;
    snprintf(path, sizeof path, "%s/deep/store", root);
    world_context(w, 2);
    world_must(zarr_store_open(&c->store, w->ctx, path, &opts, &err), &err, "open");
    world_must(zarr_array_create(&c->a, c->store, "g/a", &spec, NULL, &err), &err, "g/a");
}

static void shape_case_append(const struct shape_case *c, int64_t rows)
{
    static int32_t data[MANY * ROW];
    const int64_t shape[2] = {rows, ROW};
    zarr_tensor t;
    zarr_error err;

    for (int i = 0; i < MANY * ROW; i++)
        data[i] = i + 1;
    zarr_tensor_host(&t, data, (size_t)rows * ROW * sizeof *data, 2, shape);
    world_must(zarr_array_append(c->a, 0, &t, NULL, NULL, &err), &err, "append");
}

/* How often the whole file system was synced from entry `begin` on. What was promised
 * there must be on the disk, and something was. */
static int whole_syncs(size_t begin)
{
    int n = 0, marks = 0;

    for (size_t i = begin; i < tape.n; i++) {
        n += tape.op[i].kind == OP_SYNC_ALL;
        if (tape.op[i].kind != OP_MARK)
            continue;
        marks++;
        assert_int_equal(count_unsynced(i + 1), 0);
    }
    assert_true(marks > 0);
    return n;
}

/* No flush comes before the first append, so that it also finds folders whose names are
 * not on the disk, down from those above the root. */
static void shape_case_run(struct shape_case *c)
{
    const uint64_t less[2] = {2, 6};
    size_t begin;
    struct world w;
    zarr_error err;

    begin_tape();
    shape_case_open(c, &w);
    for (int i = 0; i < 3; i++) {
        begin = tape.n;
        tape.put = c->format == 2 ? ".zarray" : "zarr.json";
        shape_case_append(c, 1);
        assert_int_equal(whole_syncs(begin), 0);
    }
    begin = tape.n;
    tape.put = NULL;
    tape.erase = ".zarrc-leftovers";
    world_must(zarr_array_resize(c->a, less, NULL, &err), &err, "shrink");
    assert_int_equal(whole_syncs(begin), 0);
    begin = tape.n;
    tape.erase = NULL;
    world_must(zarr_array_resize(c->a, (const uint64_t[]){2, ROW}, NULL, &err), &err,
               "grow");
    tape.put = c->format == 2 ? ".zarray" : "zarr.json";
    shape_case_append(c, MANY);
    assert_int_equal(whole_syncs(begin), 1);
    tape.put = NULL;
    zarr_array_free(c->a);
    zarr_store_free(c->store);
    w.store = NULL;
    world_close(&w);
    end_tape();
}

/* An append and a shrink do not wait for what other programs wrote to the disk, unless
 * they change many chunks. What they write is on the disk in time all the same. */
static void test_alone(void **state)
{
    static const uint32_t locking[] = {ZARR_LOCKING_OS, ZARR_LOCKING_NONE},
                          durability[] = {ZARR_DURABILITY_COMMIT,
                                          ZARR_DURABILITY_ORDERED};

    (void)state;
    for (unsigned i = 0; i < 8; i++)
        shape_case_run(&(struct shape_case){.durability = durability[i & 1],
                                            .locking = locking[i >> 1 & 1],
                                            .format = i & 4 ? 2 : 3});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_durability),
                                       cmocka_unit_test(test_alone)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
