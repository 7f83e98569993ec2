/*
 * pipe/request/request.h - the door of requests: worker contexts, budgets, counters,
 * failures of parts, and the state of one read or write. It reads, decodes and stores
 * nothing itself.
 * Thread class: requests are shared; a worker context belongs to one thread at a time.
 */
#ifndef ZR_PIPE_REQUEST_H
#define ZR_PIPE_REQUEST_H

#include "pipe/request/io.h"
#include "pipe/request/workers.h"

/* ---- flights (flights.c) --------------------------------------------------------- */

/*
 * Waves of one request that are carried out at once. The first member of a struct of the
 * process's memory (zr_calloc(NULL, ...)): a helper that the pool starts late may outlive
 * the request, and even the context with its allocator.
 */
struct zr_flights {
    bool is_callers;  /* memory of the caller instead: there are no helpers */
    atomic_uint refs; /* threads that may still use the struct */
    uint64_t fork_generation;
    /* pulls waves under the lock and carries them out, until none is left or `closed` */
    void (*pull)(struct zr_flights *f);
    struct {
        zr_mutex mutex;
        zr_cond idle;
        bool closed;        /* no more waves are pulled */
        uint32_t n_active;  /* helpers inside pull() */
        uint64_t failed_at; /* ordinal of the lowest failing item */
        zarr_status status;
        zarr_error error;
    } locked;
};
enum {
    ZR_FLIGHTS = 3,
    ZR_DEVICE_FLIGHTS = 12, /* most of a read into a device */
    ZR_DEVICE_WRITES = 6    /* of a write from one */
};
void zr_flights_init(struct zr_flights *f, void (*pull)(struct zr_flights *f));
void zr_flights_unref(struct zr_flights *f);
/* Returns false in a forked child, without the lock: its holder and the helpers do not
 * exist there. */
bool zr_flights_lock(struct zr_flights *f);
/* Notes a failure and closes. Called under the lock. */
void zr_flights_fail(struct zr_flights *f, zarr_status st, const zarr_error *err,
                     uint64_t ordinal);
/* Has pull() called on up to n - 1 helpers. The caller calls it, too, and then
 * zr_flights_end(), which waits for all and tells the lowest failure. In a forked child
 * it returns CANCELLED at once, and what helpers use must not be freed: they may have
 * been changing it. */
void zr_flights_start(struct zr_flights *f, uint32_t n);
zarr_status zr_flights_end(struct zr_flights *f, zarr_error *err);

/* ---- requests ------------------------------------------------------------------ */

/* Bytes that a part of a request has at once: of memory, and of the tensor's device. */
struct zr_need {
    uint64_t host, device;
};
/* Objects that a write has stored and that no check has confirmed yet
 * (overtaken_write.c). */
struct zr_put_notes {
    uint8_t *ptr;
    size_t cap, bytes;
    uint64_t dropped; /* bytes of the notes that a check confirmed */
};
struct zarr_request {
    struct zr_io io; /* a copy */
    struct {
        zr_mutex mutex;
        union {
            struct {
                zarr_stats stats;
                struct zr_copy_counters copies;
            };
            uint64_t counter[ZR_COUNTERS];
        };
        uint64_t next_progress_ns;
        bool in_progress_call;
        struct zr_need reserved; /* by a plug-in's pipeline, for a device */
        struct zr_put_notes notes;
        /* only for submitted requests, see submitted_requests.c */
        struct zr_then *then, *last_then; /* continuations to call */
        struct zr_fd_event fd;
        zr_thread settler; /* calls the continuations, once `done` is set */
        bool done, settled;
        bool freed; /* by a continuation */
    } locked;
    zarr_cancel cancel; /* its `outer` is the caller's */
    /* number of elements that the steps of a plug-in's pipeline have read or written */
    atomic_uint_fast64_t delivered;
    bool last_try; /* a shard that was replaced meanwhile fails the read now */
    uint64_t fork_generation, begun_ns;
    struct zr_budget own;          /* io.memory_bytes, while the request runs */
    struct zr_holders own_holders; /* only if zr_io_holds() */
    bool has_own;
    bool has_waited; /* ZR_HOLD_WAIT_NS were over once; under the lock of the plan */
    struct zr_budget *device; /* of the tensor's device; NULL: nothing limits it */
    /* only for submitted requests */
    bool submitted;
    const zarr_allocator *alloc;
    struct zr_task task;
    struct zr_event done;    /* status and error are final */
    struct zr_event settled; /* and every continuation has returned */
    zarr_status status;
    zarr_error error;
    zarr_status (*work)(void *owner, struct zarr_request *rq,
                        zarr_error *err); /* NULL: io */
    void (*release)(void *owner);
    void *owner;
};
/* Makes a request; io: copied, or NULL. The caller deinits locked.mutex. */
void zr_request_init(struct zarr_request *rq, const struct zr_io *io,
                     const zarr_cancel *cancel);
/* The error of a request that a forked child inherited: the child has one of its threads
 * at most, and that one ends the request as CANCELLED. */
zarr_status zr_request_inherited(zarr_error *err);
/* Before and after access to rq->locked. They do nothing in a forked child, where another
 * thread of the parent may hold the lock for ever. Between them no function is called
 * that may fork. */
void zr_request_lock(struct zarr_request *rq);
void zr_request_unlock(struct zarr_request *rq);
/* Takes bytes of the device's budget, then of the request's own, if it has one, then of
 * the engine's, and gives them back. Who holds bytes must not wait for more. */
zarr_status zr_request_take(struct zarr_request *rq, struct zr_need need,
                            zarr_error *err);
void zr_request_give(struct zarr_request *rq, struct zr_need need);
/* Keeps bytes of memory in place of `taken` ones (zr_budget_keep()). */
void zr_request_keep(struct zarr_request *rq, uint64_t bytes, uint64_t taken);
/* ---- values of shards that are held (shard_memory.c) ------------------------------- */

/* How long a request waits, once, while no other gives anything back. Not for ever: a
 * function of the application that the request calls, such as a store, may itself read,
 * and then its request would wait for the one that waits for it. */
#define ZR_HOLD_WAIT_NS UINT64_C(10000000000)

/* Whether shards of this array have codecs around them, so that values are held. */
bool zr_io_holds(const struct zr_io *io);
void zr_holders_init(struct zr_holders *h, uint64_t total);
void zr_holders_deinit(struct zr_holders *h);
/* Of a budget: what values of rank 0 may have at once. All ranks have less than half. */
uint64_t zr_held_most(uint64_t total);
/* Before shards of one level are opened: waits for the bytes of their values. The thread
 * has nothing of the budgets but shards that this one is in. CANCELLED: as the request.
 */
zarr_status zr_opens_hold(struct zarr_request *rq, struct zr_open *open, uint32_t n_opens,
                          zarr_error *err);
/* Gives back what no shard has taken over. */
void zr_opens_let_go(struct zr_open *open, uint32_t n_opens);
/* Gives back all but so many bytes. */
void zr_held_shrink(struct zr_held *h, uint64_t bytes);

/* The most bytes that all parts of a request may hold at once. */
uint64_t zr_io_budget(const struct zr_io *io);
/* Copies the counters, up to out->struct_size. out may be NULL. */
void zr_request_stats(struct zarr_request *rq, zarr_stats *out);
/* Adds the worker's counters to the request's and sets them to zero. */
void zr_request_merge(struct zarr_request *rq, struct zr_worker *worker);
/* Calls the caller's progress function if it is due. That function may itself read and
 * write, even the same chunk, so this thread must hold no lock and nothing of the
 * budget. */
void zr_request_report(struct zarr_request *rq);
/* Calls it, which the request has, at the end of the request. */
void zr_request_report_end(struct zarr_request *rq);
/* Counts one wave, or one batch of units, as done, and logs it as a trace: so many
 * segments or units, begun at begun_ns. */
void zr_request_wave(struct zarr_request *rq, uint32_t n, uint64_t begun_ns);
/* The time, if waves are logged, else 0. */
uint64_t zr_request_wave_begin(const struct zarr_request *rq);
/* Sets chunks_total: the leaf chunks that the request touches. */
void zr_request_total(struct zarr_request *rq, uint64_t chunks);
/* Prepares a repetition of the same request: counters of chunks are again as before,
 * those of work (bytes, GETs, copies) go on. */
void zr_request_again(struct zarr_request *rq, const zarr_stats *before);
/* ---- arrays that another program replaces (overtaken_write.c) ---------------------- */

/* Whether io.check says that the array is gone or another one. */
bool zr_is_overtaken(zarr_status st);
/* Calls io.check for a write. Fails only if zr_is_overtaken(). The second function is for
 * the holder of the lock of a unit. It does nothing if other programs do not see that
 * lock, and in stores of plug-ins, where a look may be a round trip. */
zarr_status zr_request_check(struct zarr_request *rq, zarr_error *err);
zarr_status zr_request_check_locked(struct zarr_request *rq, zarr_error *err);
/* Before and after an operation that may store an object. The second function keeps that
 * it did, until a check confirms it. */
void zr_ask_put(const struct zarr_request *rq, zarr_store_op *op);
zarr_status zr_note_put(struct zarr_request *rq, const zarr_store_op *op,
                        zarr_error *err);
/* After the last check failed with err: removes the unconfirmed objects that the request
 * made, and adds to the message how many objects remain. */
void zr_take_back(struct zarr_request *rq, zarr_error *err);
/* After the last check could not be made: adds to the message what that means. */
void zr_tell_unchecked(zarr_error *err);
void zr_put_notes_free(struct zarr_request *rq);

uint32_t zr_io_threads(const struct zr_io *io); /* at least 1 */
uint64_t zr_io_wave_bytes(const struct zr_io *io);

bool zr_io_is_host(const struct zr_io *io, int32_t device_type);
/* The number of the device that a request's blocks of this memory kind are on: that of
 * the tensor. */
int32_t zr_io_device_id(const struct zr_io *io, int32_t device_type);

/* The caller's tensor that a target belongs to. */
const struct zr_view *zr_target_view(const struct zr_io *io, const struct zr_target *t);
/* Number of elements that the request reads or writes; UINT64_MAX: more. */
uint64_t zr_io_elements(const struct zr_io *io);
/* The request's selections, for a plan or a projector. all: room for one that takes
 * everything, which the caller frees. */
zarr_status zr_io_project(struct zr_projector **out, const struct zr_io *io,
                          zarr_selection **all, zarr_error *err);
/* The next unit that a write touches. A write of a field never covers a whole unit, even
 * with all its elements. If elements outside of the shape become the fill value, a whole
 * unit is a full one. */
bool zr_next_unit(const struct zr_io *io, struct zr_projector *p,
                  struct zr_projection *out);
/* ---- memory of devices (device_budget.c) ------------------------------------------ */

void zr_device_budgets_init(struct zr_device_budgets *d);
void zr_device_budgets_deinit(struct zr_device_budgets *d, const zarr_allocator *alloc);
/* The budget of a device, which lives as long as the engine. NULL: it has none. */
zarr_status zr_device_budget_find(struct zr_budget **out, struct zr_engine *e,
                                  const zarr_memory *on, zarr_error *err);
/* Bytes that n leaves have on the tensor's device at most while they are decoded, or
 * encoded. old: their old values are decoded, too. 0 for host memory. */
uint64_t zr_device_need(const struct zr_io *io, const struct zr_level *lv, bool encode,
                        bool old, uint64_t n);
/* What a wave may have on the tensor's device, if `flights` share its budget; UINT64_MAX
 * if nothing limits it. */
uint64_t zr_device_room(const struct zr_io *io, uint32_t flights);
/* The most leaves that may be in work at once within the budget of the tensor's device,
 * at least 1; UINT32_MAX if nothing limits it. flights: the waves that share the
 * budget. */
uint32_t zr_device_most(const struct zr_io *io, const struct zr_level *lv, bool encode,
                        bool old, uint32_t flights);
/* Decoded bytes of a wave whose chunks a device decodes or encodes: it works on about a
 * thousand of them at once. 0: the engine's waves are right. */
uint64_t zr_device_wave(const struct zr_io *io);
/* Whether a chunk failed with this status because it alone needs more than the budget of
 * the tensor's device. Then it is done again in host memory. */
bool zr_is_too_large(const struct zr_work *w, const struct zr_level *lv, bool encode,
                     zarr_status st);
/* Sets w->on_host, and logs why. */
void zr_work_on_host(struct zr_work *w, const struct zr_level *lv, bool encode);
/* If such a chunk fails again, its error says why the device did not do it. */
zarr_status zr_too_large_tell(const struct zr_work *w, const struct zr_level *lv,
                              bool encode, zarr_status st, zarr_error *err);
/* Bytes that one unit has on the device at most while it is written alone, if its
 * elements come from a device. */
uint64_t zr_unit_on_device(const struct zr_io *io, const struct zr_level *lv);

/* ---- parts (parts.c) ------------------------------------------------------------ */

/* Forgets the failures of an earlier try. */
void zr_parts_begin(struct zarr_request *rq);
/* Whether a failure with this status is that of the parts which touch the chunk. If not,
 * the request fails. */
bool zr_parts_take(const struct zarr_request *rq, zarr_status st);
/* Notes the failure of a part, or of all parts that a projection belongs to. Of several
 * failures of a part, that of the lowest ordinal counts. */
void zr_part_fail(struct zarr_request *rq, uint32_t i, zarr_status st,
                  const zarr_error *err, uint64_t ordinal);
void zr_parts_fail(struct zarr_request *rq, const struct zr_projection *p, zarr_status st,
                   const zarr_error *err, uint64_t ordinal);
/* The status of the first part that failed, with its error; its number is err->item. */
zarr_status zr_parts_status(const struct zarr_request *rq, zarr_error *err);
/* Gives all parts that have not failed the status of the request, which failed. */
void zr_parts_fail_all(struct zarr_request *rq, zarr_status st, const zarr_error *err);
/* Gives the caller the status of each part. */
void zr_parts_tell(const struct zarr_request *rq);

/* Takes back what an attempt that met a conflict added to the counters of chunks. */
void zr_forget_chunks(zarr_stats *now, const zarr_stats *before);
/* LIMIT if `need` bytes for one block are more than io->memory_bytes. */
zarr_status zr_memory_fits(const struct zr_io *io, uint64_t need, const char *what,
                           zarr_error *err);

/* ---- the sizes of batches ------------------------------------------------------ */

void zr_waves_cut(const struct zr_io *io, struct zr_plan_args *out);
void zr_serial_cut(const struct zr_io *io, struct zr_plan_args *out);
/* The most waves of a read that are in flight. */
uint32_t zr_read_flights(const struct zr_io *io);
bool zr_wants_batches(const struct zr_io *io, const struct zr_program *p);
bool zr_is_batched(const struct zr_io *io, const struct zr_program *p);
/* Whether units of this level are encoded together: their program takes batches, or their
 * elements come from a device. */
bool zr_level_is_batched(const struct zr_io *io, const struct zr_level *lv);
/* Whether the old values and the PUTs of all units go together: the store is not written
 * on the encoding thread, and the units are of one size that metadata bounds. */
bool zr_puts_together(const struct zr_io *io);
/* Whether n units of this level are a batch: they are encoded or stored together, or they
 * are shards that are fewer than the threads. */
bool zr_units_join(const struct zr_io *io, const struct zr_level *lv, uint32_t n);
/* The batches of units that it has in work at once at most. */
uint32_t zr_write_flights(const struct zr_io *io);

#endif
