/* foreign.c - a store of the library whose operations a thread of Python carries out. The
 * library's threads push letters on a list without locks and wake that thread through an
 * eventfd. No Python is called here, and no GIL is needed. */
#include "foreign.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum {
    LOOK_MS = 50 /* how often a thread that waits looks at its cancel object */
};

/* ---- the box ---------------------------------------------------------------- */

struct zx_box *zx_box_new(void)
{
    struct zx_box *box = calloc(1, sizeof *box);

    if (!box)
        return NULL;
    box->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (box->fd < 0) {
        free(box);
        return NULL;
    }
    atomic_init(&box->n_owners, 1);
    atomic_init(&box->letters, NULL);
    atomic_init(&box->generation, 0);
    return box;
}

struct zx_box *zx_box_ref(struct zx_box *box)
{
    atomic_fetch_add(&box->n_owners, 1);
    return box;
}

void zx_box_unref(struct zx_box *box)
{
    if (!box || atomic_fetch_sub(&box->n_owners, 1) > 1)
        return;
    close(box->fd);
    free(box);
}

/* False: the box is closed, and the letter stays the caller's. */
static bool box_put(struct zx_box *box, struct zx_letter *l)
{
    struct zx_letter *head = atomic_load(&box->letters);
    const uint64_t one = 1;
    ssize_t n;

    l->generation = atomic_load(&box->generation);
    do {
        if (head == &box->closed)
            return false;
        l->next = head;
    } while (!atomic_compare_exchange_weak(&box->letters, &head, l));
    if (head) /* the one who found the list empty wakes the reader, who takes all */
        return true;
    do
        n = write(box->fd, &one, sizeof one);
    while (n < 0 && errno == EINTR);
    return true;
}

static struct zx_letter *oldest_first(struct zx_letter *l)
{
    struct zx_letter *out = NULL;

    while (l) {
        struct zx_letter *next = l->next;

        l->next = out;
        out = l;
        l = next;
    }
    return out;
}

struct zx_letter *zx_box_take(struct zx_box *box)
{
    struct zx_letter *l = atomic_load(&box->letters);

    do
        if (l == &box->closed)
            return NULL;
    while (!atomic_compare_exchange_weak(&box->letters, &l, NULL));
    return oldest_first(l);
}

struct zx_letter *zx_box_close(struct zx_box *box)
{
    struct zx_letter *l = atomic_exchange(&box->letters, &box->closed);

    return l == &box->closed ? NULL : oldest_first(l);
}

int zx_box_reset(struct zx_box *box)
{
    const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

    if (fd < 0)
        return -1;
    close(box->fd); /* the parent's is still open in the parent */
    box->fd = fd;
    atomic_fetch_add(&box->generation, 1);
    atomic_store(&box->letters, NULL);
    return 0;
}

/* ---- letters ---------------------------------------------------------------- */

/* A letter with room for `n` operations, or for one answer and a prefix. */
static struct zx_letter *letter_new(uint32_t what, uint64_t n, const char *prefix)
{
    const size_t text = prefix ? strlen(prefix) + 1 : 0;
    const size_t each = sizeof(zarr_store_op *) + sizeof(atomic_bool);
    struct zx_letter *l;

    if (n > (SIZE_MAX - sizeof *l - text) / each)
        return NULL;
    l = calloc(1, sizeof *l + (size_t)n * each + text);
    if (!l)
        return NULL;
    l->what = what;
    l->n = n;
    l->op = (zarr_store_op **)(void *)(l + 1);
    l->claimed = (atomic_bool *)(void *)(l->op + n);
    if (prefix) {
        l->prefix = (char *)(void *)(l->claimed + n);
        memcpy(l->prefix, prefix, text);
    }
    return l;
}

bool zx_claim(struct zx_box *box, struct zx_letter *l, uint64_t i)
{
    return l->generation == atomic_load(&box->generation) &&
           !atomic_exchange(&l->claimed[i], true);
}

static void say(zarr_error *err, zarr_status status, int os_code, const char *text)
{
    static const zarr_error none = ZARR_ERROR_INIT;
    size_t n = text ? strlen(text) : 0;

    if (!err)
        return;
    *err = none;
    if (status == ZARR_OK)
        return;
    if (n >= sizeof err->message)
        n = sizeof err->message - 1;
    while (n > 0 && text[n] != 0 && ((unsigned char)text[n] & 0xC0) == 0x80)
        n--; /* a character is whole or left out */
    if (n > 0)
        memcpy(err->message, text, n);
    err->message[n] = 0;
    err->code = status;
    err->os_code = os_code;
    err->os_domain = os_code ? ZARR_OS_ERRNO : ZARR_OS_NONE;
}

void zx_answer_op(struct zx_letter *l, uint64_t i, zarr_status status, int os_code,
                  const char *text)
{
    zarr_store_op *op = l->op[i];
    zarr_error err;

    op->status = status;
    op->os_code = os_code;
    say(&err, status, os_code, text);
    l->done(l->arg, op, status ? &err : NULL);
}

void zx_answer_call(struct zx_letter *l, zarr_status status, int os_code,
                    const char *text, struct zx_rows *rows)
{
    static const struct zx_rows none;
    struct zx_answer *a = l->answer;

    pthread_mutex_lock(&a->mutex);
    a->status = status;
    say(&a->err, status, os_code, text);
    if (rows) {
        a->rows = *rows;
        *rows = none;
    }

    a->is_done = true;
    pthread_cond_signal(&a->end);
    pthread_mutex_unlock(&a->mutex);
}

void zx_letter_end(struct zx_box *box, struct zx_letter *l, const char *why)
{
    for (uint64_t i = 0; i < l->n; i++) {
        if (!zx_claim(box, l, i))
            continue;
        if (l->what == ZX_OPS)
            zx_answer_op(l, i, ZARR_ERR_IO, 0, why);
        else
            zx_answer_call(l, ZARR_ERR_IO, 0, why, NULL);
    }
    free(l);
}

/* ---- the store -------------------------------------------------------------- */

static const char GONE[] =
    "the interpreter is ending, and its stores and plug-ins have gone";

struct foreign {
    struct zx_box *box;
    struct zx_letter *last; /* ZX_CLOSE, made at the beginning so that it cannot fail */
    uint64_t number;
    uint32_t caps, parallel;
    char *place; /* NULL: not known */
};

uint64_t zx_foreign_number(const void *self)
{
    return ((const struct foreign *)self)->number;
}

static void foreign_caps(void *self, zarr_store_caps *out)
{
    const struct foreign *f = self;

    out->flags = f->caps;
    out->parallel = f->parallel;
}

static void foreign_submit(void *self, zarr_store_op **ops, uint64_t n, zx_done_fn done,
                           void *arg)
{
    struct foreign *f = self;
    struct zx_box *box = zx_box_ref(f->box); /* done() may free the store */
    struct zx_letter *l = letter_new(ZX_OPS, n, NULL);

    if (l) {
        l->store = f->number;
        l->done = done;
        l->arg = arg;
        memcpy(l->op, ops, (size_t)n * sizeof *ops);
        if (!box_put(box, l))
            zx_letter_end(box, l, GONE);
    } else {
        struct zx_letter one = {.op = ops, .done = done, .arg = arg};

        for (uint64_t i = 0; i < n; i++)
            zx_answer_op(&one, i, ZARR_ERR_NO_MEMORY, 0, "no memory for the operations");
    }
    zx_box_unref(box);
}

/* Sends a letter that gets no answer. Without memory, what it would end goes on. */
static void tell(struct foreign *f, uint32_t what, void *arg, uint64_t listing)
{
    struct zx_letter *l = letter_new(what, 0, NULL);

    if (!l)
        return;
    l->store = f->number;
    l->arg = arg;
    l->listing = listing;
    if (!box_put(f->box, l))
        free(l);
}

static void foreign_cancel(void *self, void *arg)
{
    tell(self, ZX_CANCEL, arg, 0);
}

static void answer_init(struct zx_answer *a)
{
    pthread_condattr_t monotonic;

    memset(a, 0, sizeof *a);
    pthread_mutex_init(&a->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&a->end, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static void answer_deinit(struct zx_answer *a)
{
    pthread_cond_destroy(&a->end);
    pthread_mutex_destroy(&a->mutex);
}

/* For the holder of the mutex: waits a moment. */
static void answer_look(struct zx_answer *a)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&a->end, &a->mutex, &until);
}

/* Waits until a letter is answered, or until Ctrl-C cancels the call that this thread
 * does. The letter is freed only after its answer, which needs the mutex. */
static void answer_wait(struct foreign *f, struct zx_letter *l, struct zx_answer *a,
                        const zarr_cancel *cancel)
{
    const zarr_cancel *thread = zx_cancel_of_thread();
    bool gives_up = false;

    pthread_mutex_lock(&a->mutex);
    while (!a->is_done) {
        if (!cancel && !thread) {
            pthread_cond_wait(&a->end, &a->mutex);
            continue;
        }
        answer_look(a);
        gives_up = !a->is_done &&
                   (zarr_cancel_is_set(cancel) || zarr_cancel_is_set(thread)) &&
                   zx_claim(f->box, l, 0);
        if (gives_up) {
            a->status = ZARR_ERR_CANCELLED;
            say(&a->err, a->status, 0, "cancelled");
            a->is_done = true;
        }
    }
    pthread_mutex_unlock(&a->mutex);
    if (gives_up)
        foreign_cancel(f, a);
}

/* What a letter asks for. */
struct question {
    uint32_t what, how;
    const char *prefix;
    uint64_t listing;
};

/* Sends a letter and waits for its answer, whose rows are the caller's. */
static zarr_status ask(struct foreign *f, const struct question *q, struct zx_answer *a,
                       const zarr_cancel *cancel, zarr_error *err)
{
    struct zx_letter *l = letter_new(q->what, 1, q->prefix);

    answer_init(a);
    if (!l) {
        answer_deinit(a);
        say(err, ZARR_ERR_NO_MEMORY, 0, "no memory for a call of a store");
        return ZARR_ERR_NO_MEMORY;
    }
    l->store = f->number;
    l->how = q->how;
    l->listing = q->listing;
    l->answer = a;
    l->arg = a;
    if (!box_put(f->box, l))
        zx_letter_end(f->box, l, GONE);
    answer_wait(f, l, a, cancel);
    answer_deinit(a);
    if (a->status && err)
        *err = a->err;
    return a->status;
}

/* A plug-in that was asked uses memory of the caller: the wait does not end before its
 * answer. */
zarr_status zx_box_ask(struct zx_box *box, uint32_t what, void *arg,
                       void (*here)(struct zx_letter *l), zarr_error *err)
{
    struct zx_letter *l = letter_new(what, 1, NULL);
    struct zx_answer a;

    if (!l) {
        say(err, ZARR_ERR_NO_MEMORY, 0, "no memory for a call of a plug-in");
        return ZARR_ERR_NO_MEMORY;
    }
    answer_init(&a);
    l->answer = &a;
    l->arg = arg;
    if (here) {
        l->generation = atomic_load(&box->generation);
        here(l);
    } else if (!box_put(box, l)) {
        zx_letter_end(box, l, GONE);
    }
    pthread_mutex_lock(&a.mutex);
    while (!a.is_done)
        pthread_cond_wait(&a.end, &a.mutex);
    pthread_mutex_unlock(&a.mutex);
    answer_deinit(&a);
    if (a.status && err)
        *err = a.err;
    return a.status;
}

/* Passes on the rows of a page. True: fn ends the listing. */
static bool tell_rows(const struct zx_rows *rows, zarr_store_list_fn fn, void *user)
{
    for (const struct zx_row *r = rows->first; r; r = zx_row_next(r)) {
        const zarr_store_item item = {.key = zx_row_text(r),
                                      .bytes = zx_row_number(r, 0),
                                      .is_prefix = (uint32_t)zx_row_number(r, 1)};

        if (fn(user, &item))
            return true;
    }
    return false;
}

static zarr_status foreign_list(void *self, const char *prefix, uint32_t how,
                                zarr_store_list_fn fn, void *user,
                                const zarr_cancel *cancel, zarr_error *err)
{
    static atomic_uint_fast64_t n_listings;
    struct question q = {
        .what = ZX_LIST, .prefix = prefix, .listing = atomic_fetch_add(&n_listings, 1)};
    bool has_more = true, ends = false;
    struct zx_answer a;
    zarr_status status = ZARR_OK;

    if (how == ZARR_LIST_DEBRIS)
        return ZARR_OK; /* there are no files */
    q.how = how == ZARR_LIST_UNLINKED             ? ZARR_LIST_RECURSIVE
            : how == ZARR_LIST_DIRECTORY_UNLINKED ? ZARR_LIST_DIRECTORY
                                                  : how;
    for (; has_more && !ends; q.what = ZX_LIST_NEXT) {
        status = ask(self, &q, &a, cancel, err);
        has_more = a.rows.has_more;
        if (status == ZARR_OK && a.rows.is_short) {
            say(err, ZARR_ERR_NO_MEMORY, 0, "no memory for the rows of a listing");
            status = ZARR_ERR_NO_MEMORY;
        }
        ends = status != ZARR_OK || tell_rows(&a.rows, fn, user);
        zx_rows_free(&a.rows);
    }
    if (has_more)
        tell(self, ZX_LIST_END, NULL, q.listing);
    return status;
}

static zarr_status foreign_flush(void *self, const zarr_cancel *cancel, zarr_error *err)
{
    struct zx_answer a;

    return ask(self, &(const struct question){.what = ZX_FLUSH}, &a, cancel, err);
}

static zarr_status foreign_erase_prefix(void *self, const char *prefix,
                                        const zarr_cancel *cancel, zarr_error *err)
{
    const struct question q = {.what = ZX_ERASE_PREFIX, .prefix = prefix};
    struct zx_answer a;

    return ask(self, &q, &a, cancel, err);
}

static void foreign_place(void *self, zarr_store_place_fn fn, void *user)
{
    zarr_store_place place = {.struct_size = sizeof place};
    const char **const text[] = {&place.scheme, &place.endpoint, &place.bucket,
                                 &place.prefix};
    const char *at = ((const struct foreign *)self)->place;

    for (size_t i = 0; i < sizeof text / sizeof *text; i++, at += strlen(at) + 1)
        *text[i] = at;
    fn(user, &place);
}

static void foreign_close(void *self)
{
    struct foreign *f = self;

    if (!box_put(f->box, f->last))
        free(f->last);
    zx_box_unref(f->box);
    free(f->place);
    free(f);
}

void *zx_foreign_new(const struct zx_foreign_spec *spec, zarr_error *err)
{
    struct foreign *f = malloc(sizeof *f);
    struct zx_letter *last = letter_new(ZX_CLOSE, 0, NULL);
    char *place = spec->place ? malloc(spec->place_bytes) : NULL;

    if (!f || !last || (spec->place && !place)) {
        free(f);
        free(place);
        free(last);
        say(err, ZARR_ERR_NO_MEMORY, 0, "no memory for a store");
        return NULL;
    }
    last->store = spec->number;
    if (place)
        memcpy(place, spec->place, spec->place_bytes);
    *f = (struct foreign){.box = zx_box_ref(spec->box),
                          .last = last,
                          .number = spec->number,
                          .caps = spec->caps,
                          .parallel = spec->parallel,
                          .place = place};
    return f;
}

void zx_foreign_table(zarr_store_vtable *out, const struct zx_foreign_spec *spec)
{
    *out = (zarr_store_vtable){.struct_size = sizeof *out,
                               .name = spec->url,
                               .caps = foreign_caps,
                               .submit = foreign_submit,
                               .cancel = foreign_cancel,
                               .list = foreign_list,
                               .close = foreign_close};
    if (spec->can_flush)
        out->flush = foreign_flush;
    if (spec->can_erase_prefix)
        out->erase_prefix = foreign_erase_prefix;
    if (spec->place)
        out->place = foreign_place;
}

zarr_status zx_foreign_open(zarr_store **out, zarr_context *ctx,
                            const struct zx_foreign_spec *spec, zarr_error *err)
{
    void *self = zx_foreign_new(spec, err);
    zarr_store_options o = ZARR_STORE_OPTIONS_INIT;
    zarr_store_vtable vt;

    if (!self)
        return ZARR_ERR_NO_MEMORY;
    zx_foreign_table(&vt, spec);
    o.flags = spec->flags;
    return zarr_store_open_custom(out, ctx, &vt, self, &o, err);
}
