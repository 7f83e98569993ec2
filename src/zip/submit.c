/*
 * zip/submit.c - many operations at once. If the store below is slow, the ranges of the
 * archive that they need are read first, by one submit() of that store, which sees all of
 * them together and can merge them. Then each operation runs as if it were alone, finds
 * its bytes, decodes them and checks them. Only headers whose place in the archive does
 * not follow from the directory cost a second round.
 *
 * All of this happens on the thread that submits, with help from the pool. Threads of the
 * store below decode nothing, and no operation waits for a thread of the pool.
 * Thread class: shared.
 */
#include "zip/zip_int.h"

#include "sched/sched.h"

enum {
    AHEAD_MOST = 64 << 20, /* bytes of blocks; what needs more is read one by one */
    CHECK_NS = 200,        /* for the rest of an operation whose bytes are there */
    CHECK_BYTES_PER_NS = 4
};

struct zip_batch {
    struct zr_zip_store *z;
    zarr_store_op **op; /* n of them */
    uint64_t n;
    void (*done)(void *arg, zarr_store_op *op, const zarr_error *err);
    void *arg;
    struct zr_zip_ahead *ahead; /* by operation; NULL: nothing is read ahead */
    zarr_store_op **read;       /* those of `ahead` that are read now */
    uint64_t block_bytes;
    atomic_uint_fast64_t left;
    struct zr_event all;
};

/* ---- reading ahead ---- */

static void ahead_done(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct zip_batch *b = arg;
    struct zr_zip_ahead *ahead = (struct zr_zip_ahead *)op; /* its first member */

    if (op->status != ZARR_OK && err) {
        ahead->err = zr_malloc(b->z->archive.env.alloc, sizeof *err);
        if (ahead->err)
            *ahead->err = *err;
    }
    if (atomic_fetch_sub(&b->left, 1) == 1)
        zr_event_set(&b->all);
}

static bool all_are_cancelled(const struct zip_batch *b)
{
    for (uint64_t i = 0; i < b->n; i++)
        if (!b->op[i]->cancel || !zr_is_cancelled(b->op[i]->cancel))
            return false;
    return true;
}

/* Submits n reads and waits for them. Returns false in a forked child. */
static bool read_all_ahead(struct zip_batch *b, uint64_t n)
{
    zarr_store *store = b->z->archive.store;
    bool asked = false, here = true;

    if (n == 0)
        return true;
    atomic_init(&b->left, n);
    zr_event_init(&b->all);
    zarr_store_submit(store, b->read, n, ahead_done, b);
    while (here &&
           !zr_event_wait(&b->all, asked ? UINT64_MAX : zr_now_ns() + ZR_ZIP_CANCEL_NS)) {
        here = !zr_has_forked(b->all.generation);
        asked = here && all_are_cancelled(b);
        if (asked)
            zarr_store_cancel(store, b);
    }
    if (here)
        zr_event_deinit(&b->all);
    return here;
}

/* Finds the member of a GET. False: there is none, or it is in parts, which may go at any
 * time. An archive that changes meanwhile has another version then.
 */
static bool find_member(const struct zip_batch *b, const zarr_store_op *op,
                        struct zr_zip_view *v)
{
    if (op->verb != ZARR_STORE_GET ||
        zr_zip_view_begin(b->z, op->key, op->cancel, true, v, NULL) != ZARR_OK)
        return false;
    zr_zip_view_end(b->z, v);
    return !v->archive.parts;
}

/* Prepares the read of what an operation needs first. False: it will read itself. */
static bool plan_ahead(struct zip_batch *b, const zarr_store_op *op, bool headers,
                       struct zr_zip_ahead *ahead)
{
    const struct zr_zip_caller caller = {.kind = op->flags & ZARR_STORE_OP_KIND,
                                         .cancel = op->cancel};
    struct zr_zip_first first;
    struct zr_zip_view v;
    zarr_memory mem;

    if (!find_member(b, op, &v) || !zr_zip_get_first(b->z, &v, op, headers, &first))
        return false;
    if (!first.to) {
        if (first.n > AHEAD_MOST - b->block_bytes)
            return false;
        ahead->block = zr_malloc(b->z->archive.env.alloc, (size_t)first.n);
        if (!ahead->block)
            return false;
        b->block_bytes += first.n;
        first.to = ahead->block;
    }
    mem = zr_mem_of_host(first.to, first.n);
    ahead->op = zr_zip_read_op(&v.archive, first.at, first.n, &mem, &caller);
    return true;
}

static void drop_ahead(struct zip_batch *b, struct zr_zip_ahead *ahead)
{
    const zarr_allocator *alloc = b->z->archive.env.alloc;

    if (ahead->block)
        b->block_bytes -= ahead->op.length;
    zr_free(alloc, ahead->block);
    zr_free(alloc, ahead->err);
    *ahead = (struct zr_zip_ahead){0};
}

static bool read_ahead(struct zip_batch *b, bool headers)
{
    struct zr_zip_view v;
    uint64_t n = 0;

    for (uint64_t i = 0; i < b->n; i++)
        if (plan_ahead(b, b->op[i], headers, &b->ahead[i]))
            b->read[n++] = &b->ahead[i].op;
    if (!read_all_ahead(b, n))
        return false;
    for (uint64_t i = 0; headers && n > 0 && i < b->n; i++) {
        if (b->ahead[i].op.length > 0 && find_member(b, b->op[i], &v))
            zr_zip_take_header(b->z, &v, b->op[i], &b->ahead[i]);
        drop_ahead(b, &b->ahead[i]);
    }
    return true;
}

/* ---- running ---- */

static zarr_status run_item(void *arg, uint64_t i, uint32_t worker, zarr_error *unused)
{
    struct zip_batch *b = arg;
    zarr_store_op *op = b->op[i];
    zarr_error err = {0};

    ZR_UNUSED(worker, unused);
    op->status = zr_zip_run_one(b->z, op, b->ahead ? &b->ahead[i] : NULL, &err);
    op->os_code = op->status != ZARR_OK ? err.os_code : 0;
    b->done(b->arg, op, op->status != ZARR_OK ? &err : NULL);
    return ZARR_OK;
}

static void run_all(struct zip_batch *b)
{
    struct zr_parallel_options opts = {.max_threads = b->z->archive.caps.parallel};
    uint64_t bytes = 0, n = 0;

    for (uint64_t i = 0; b->ahead && i < b->n; i++) {
        bytes = zr_add_cap(bytes, b->ahead[i].op.length);
        n += b->ahead[i].op.length > 0;
    }
    if (n > 0 && n == b->n) /* else some operations read themselves, and take long */
        opts.item_ns = CHECK_NS + bytes / n / CHECK_BYTES_PER_NS;
    (void)zr_parallel_run(b->n, &opts, run_item, b, NULL);
}

void zr_zip_submit(void *self, zarr_store_op **ops, uint64_t n,
                   void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                   void *arg)
{
    struct zr_zip_store *z = self;
    const zarr_allocator *alloc = z->archive.env.alloc;
    struct zip_batch b = {.z = z, .op = ops, .n = n, .done = done, .arg = arg};
    size_t count = 0;

    if (!(z->archive.caps.flags & ZARR_STORE_CAP_FAST_GET) && zr_fits(n, &count)) {
        b.ahead = zr_calloc(alloc, count, sizeof *b.ahead);
        b.read = zr_calloc(alloc, count, sizeof *b.read);
    }
    if (b.ahead && b.read && !(read_ahead(&b, true) && read_ahead(&b, false)))
        return; /* threads of the parent use all of it */
    run_all(&b);
    for (uint64_t i = 0; b.ahead && i < n; i++)
        drop_ahead(&b, &b.ahead[i]);
    zr_free(alloc, b.ahead);
    zr_free(alloc, b.read);
}
