/*
 * fault/mortal.c - see mortal.h.
 */
#include "mortal.h"

#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* in memory if possible: the test makes thousands of small stores */
static char base[64], folder[80], kept[80];
const char *const mortal_folder = folder;

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)at;
    return kind == FTW_DP ? rmdir(path) : unlink(path);
}

void mortal_empty(void)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(mkdir(folder, 0700), 0);
}

/* Makes a tree of links to the files of another tree. Objects are replaced and never
 * changed, so a link is a copy. */
static const char *link_from, *link_to;

static int link_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    char name[512];

    (void)st;
    (void)at;
    snprintf(name, sizeof name, "%s%s", link_to, path + strlen(link_from));
    return kind == FTW_D ? mkdir(name, 0700) : link(path, name);
}

static void link_tree(const char *from, const char *to)
{
    link_from = from;
    link_to = to;
    nftw(to, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    assert_int_equal(nftw(from, link_one, 16, FTW_PHYS), 0);
}

void mortal_keep(void)
{
    link_tree(folder, kept);
}

void mortal_restore(void)
{
    link_tree(kept, folder);
}

void mortal_begin(const char *name)
{
    snprintf(base, sizeof base, "/dev/shm/zarrc-%s-XXXXXX", name);
    if (!mkdtemp(base)) {
        snprintf(base, sizeof base, "/tmp/zarrc-%s-XXXXXX", name);
        if (!mkdtemp(base))
            abort();
    }
    snprintf(folder, sizeof folder, "%s/store", base);
    snprintf(kept, sizeof kept, "%s/kept", base);
}

void mortal_end(void)
{
    nftw(base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- the store ------------------------------------------------------------------- */

static void mortal_caps(void *self, zarr_store_caps *out)
{
    const struct mortal *m = self;

    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_WRITE |
                 ZARR_STORE_CAP_ATOMIC_PUT | (m->lists ? ZARR_STORE_CAP_LIST : 0);
}

static void mortal_run(void *self, zarr_store_op *op, zarr_error *err)
{
    struct mortal *m = self;
    const bool dies = m->left > 0 && --m->left == 0;

    m->n_ops++;
    m->n_counted += m->counted && strcmp(op->key, m->counted) == 0;
    if (dies && !m->late)
        raise(SIGKILL);
    if (op->verb == ZARR_STORE_PUT)
        op->status =
            zarr_store_put(m->inner, op->key, (char *)op->mem.handle + op->mem.offset,
                           op->mem.bytes, NULL, err);
    else if (op->verb == ZARR_STORE_ERASE)
        op->status = zarr_store_erase(m->inner, op->key, NULL, err);
    else
        op->status = inner_get(m->inner, op, err);
    if (op->verb == ZARR_STORE_PUT)
        op->done_bytes = op->mem.bytes;
    if (dies)
        raise(SIGKILL);
}

static zarr_status mortal_list(void *self, const char *prefix, uint32_t how,
                               zarr_store_list_fn fn, void *user,
                               const zarr_cancel *cancel, zarr_error *err)
{
    (void)cancel;
    struct mortal *m = self;

    if (m->left > 0 && --m->left == 0)
        raise(SIGKILL);
    return zarr_store_list(m->inner, prefix, how, fn, user, NULL, err);
}

static void mortal_close(void *self)
{
    struct mortal *m = self;

    zarr_store_free(m->inner);
}

void mortal_open(struct world *w, struct mortal *m)
{
    const zarr_store_vtable table = {.struct_size = sizeof table,
                                     .name = "mortal",
                                     .caps = mortal_caps,
                                     .run = mortal_run,
                                     .list = m->lists ? mortal_list : NULL,
                                     .close = mortal_close};
    const zarr_store_options opts = {.struct_size = sizeof opts,
                                     .durability = ZARR_DURABILITY_NONE};
    zarr_error err;

    world_context(w, 1);
    world_must(zarr_store_open(&m->inner, w->ctx, folder, &opts, &err), &err, folder);
    world_must(zarr_store_open_custom(&w->store, w->ctx, &table, m, NULL, &err), &err,
               folder);
}

bool mortal_killed(zarr_status (*fn)(zarr_store *store, const void *arg, zarr_error *err),
                   const void *arg, const struct mortal *how)
{
    const pid_t pid = fork();
    int status = 0;

    if (pid == 0) {
        struct mortal m = *how;
        struct world w;
        zarr_error err;

        mortal_open(&w, &m);
        _exit(fn(w.store, arg, &err) == ZARR_OK ? 0 : 1);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    if (!WIFSIGNALED(status) && WEXITSTATUS(status) != 0)
        fail_msg("the step fails with k %d", (int)how->left);
    return WIFSIGNALED(status);
}
