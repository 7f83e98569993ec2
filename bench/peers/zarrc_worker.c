/* bench/peers/zarrc_worker.c - the worker of zarrc, through its public headers, with the
 * defaults of every option. Writes have no durability, as no peer waits for the disk. */
#include "slow_store.h"
#include "worker.h"

#include <zarrc/vlen.h>
#include <zarrc/zarrc.h>

#include <stdio.h>
#include <string.h>

static struct {
    zarr_context *context;
    zarr_array *array, *target;
    zarr_error err;
} z;

static void check(zarr_status status, const zarr_error *err)
{
    if (status != ZARR_OK)
        fail("%s: %s", zarr_status_text(status), err->message);
}

static void begin(struct job *job)
{
    (void)job;
    check(zarr_context_create(&z.context, NULL, &z.err), &z.err);
}

static zarr_store *open_store(const struct job *job, const char *place, int is_target)
{
    zarr_store_options options = ZARR_STORE_OPTIONS_INIT;
    zarr_store *store = NULL;

    if (is_target) {
        options.flags = ZARR_STORE_CREATE;
        options.durability = ZARR_DURABILITY_NONE;
    }
    check(zarr_store_open(&store, z.context, place, is_target ? &options : NULL, &z.err),
          &z.err);
    return job->delay_ms == 0 ? store : slow_store(z.context, store, job->delay_ms);
}

static zarr_array *open_array(const struct job *job, const char *place, int is_target)
{
    zarr_store *store = open_store(job, place, is_target);
    zarr_array *array = NULL;

    check(zarr_array_open(&array, store, "", NULL, &z.err), &z.err);
    zarr_store_free(store);
    return array;
}

static void describe(struct job *job, zarr_array *array)
{
    const uint64_t *unit = zarr_array_block_shape(array);

    job->ndim = zarr_array_ndim(array);
    if (job->ndim > MOST_DIMS)
        fail("too many dimensions");
    job->item = zarr_dtype_item_bytes(zarr_array_dtype(array));
    for (int d = 0; d < job->ndim; d++) {
        job->shape[d] = zarr_array_shape(array)[d];
        job->unit[d] = unit[d];
    }
}

static void open_source(struct job *job)
{
    z.array = open_array(job, job->place, 0);
    describe(job, z.array);
}

static void open_target(struct job *job)
{
    z.target = open_array(job, job->to, 1);
    if (!z.array)
        describe(job, z.target);
}

static void close_arrays(struct job *job)
{
    (void)job;
    zarr_array_free(z.array);
    zarr_array_free(z.target);
    z.array = z.target = NULL;
}

static zarr_io_options io_options(const struct job *job)
{
    zarr_io_options options = ZARR_IO_OPTIONS_INIT;

    options.flags = job->huge ? 0 : ZARR_IO_NO_HUGE_PAGES;
    return options;
}

static void host_tensor(const struct job *job, const struct box *box, zarr_tensor *tensor,
                        uint64_t *shape)
{
    for (int d = 0; d < job->ndim; d++)
        shape[d] = box->extent[d];
    zarr_tensor_host(tensor, NULL, box->data, box->bytes, job->ndim, shape);
}

static void move_box(struct job *job, struct box *box, zarr_array *array, int is_write)
{
    const zarr_io_options options = io_options(job);
    uint64_t shape[MOST_DIMS];
    zarr_selection *selection = NULL;
    zarr_tensor tensor;
    zarr_error err = ZARR_ERROR_INIT;
    zarr_status status;

    host_tensor(job, box, &tensor, shape);
    status = zarr_selection_box(&selection, job->ndim, zarr_array_shape(array),
                                box->origin, box->extent, &err);
    if (status == ZARR_OK)
        status = is_write ? zarr_array_write(array, selection, &tensor, &options, &err)
                          : zarr_array_read(array, selection, &tensor, &options, &err);
    check(status, &err);
    zarr_selection_free(selection);
}

static void read_box(struct job *job, struct box *box, unsigned caller)
{
    (void)caller;
    move_box(job, box, z.array, 0);
}

static void write_box(struct job *job, struct box *box, unsigned caller)
{
    (void)caller;
    move_box(job, box, z.target, 1);
}

static void read_all(struct job *job, struct box *box)
{
    const zarr_io_options options = io_options(job);
    uint64_t shape[MOST_DIMS];
    zarr_tensor tensor;

    host_tensor(job, box, &tensor, shape);
    check(zarr_array_read(z.array, NULL, &tensor, &options, &z.err), &z.err);
}

static void write_all(struct job *job, struct box *box)
{
    const zarr_io_options options = io_options(job);
    uint64_t shape[MOST_DIMS];
    zarr_tensor tensor;

    host_tensor(job, box, &tensor, shape);
    check(zarr_array_write(z.target, NULL, &tensor, &options, &z.err), &z.err);
}

static void append(struct job *job, const struct box *box)
{
    uint64_t shape[MOST_DIMS];
    zarr_tensor tensor;

    host_tensor(job, box, &tensor, shape);
    check(zarr_array_append(z.target, 0, &tensor, NULL, NULL, &z.err), &z.err);
}

static void points(struct job *job, const int64_t *coordinates, char *out)
{
    const zarr_io_options options = io_options(job);
    zarr_selection *selection = NULL;
    zarr_tensor tensor;

    check(zarr_selection_points(&selection, job->ndim, zarr_array_shape(z.array), job->n,
                                coordinates, 0, NULL, &z.err),
          &z.err);
    zarr_tensor_host(&tensor, NULL, out, job->n * job->item, 1, &job->n);
    check(zarr_array_read(z.array, selection, &tensor, &options, &z.err), &z.err);
    zarr_selection_free(selection);
}

static uint64_t strings(struct job *job)
{
    const zarr_io_options options = io_options(job);
    zarr_vlen_column column = ZARR_VLEN_COLUMN_INIT;
    uint64_t bytes;

    check(zarr_array_read_vlen(z.array, NULL, &column, &options, &z.err), &z.err);
    bytes = (uint64_t)column.offsets[column.n];
    zarr_vlen_column_free(&column);
    return bytes;
}

static uint64_t open_one(struct job *job)
{
    zarr_array *array = open_array(job, job->place, 0);
    const uint64_t n = zarr_array_shape(array)[0];

    zarr_array_free(array);
    return n;
}

static int count_array(void *user, const zarr_node_item *item)
{
    *(uint64_t *)user += item->kind == ZARR_NODE_ARRAY;
    return 0;
}

static uint64_t list(struct job *job)
{
    zarr_store *store = open_store(job, job->place, 0);
    zarr_group *group = NULL;
    uint64_t n = 0;

    check(zarr_group_open(&group, store, "", NULL, &z.err), &z.err);
    check(zarr_group_list(group, count_array, &n, NULL, &z.err), &z.err);
    zarr_group_free(group);
    zarr_store_free(store);
    return n;
}

static uint64_t open_nodes(struct job *job)
{
    zarr_store *store = open_store(job, job->place, 0);
    uint64_t sum = 0;

    for (uint64_t i = 0; i < job->n; i++) {
        zarr_array *array = NULL;
        char path[32];

        snprintf(path, sizeof path, "a%05u", (unsigned)i);
        check(zarr_array_open(&array, store, path, NULL, &z.err), &z.err);
        sum += zarr_array_shape(array)[0];
        zarr_array_free(array);
    }
    zarr_store_free(store);
    return sum;
}

int main(int argc, char **argv)
{
    static const struct engine engine = {.begin = begin,
                                         .open = open_source,
                                         .open_target = open_target,
                                         .close = close_arrays,
                                         .read = read_box,
                                         .write = write_box,
                                         .read_all = read_all,
                                         .write_all = write_all,
                                         .append = append,
                                         .points = points,
                                         .strings = strings,
                                         .open_one = open_one,
                                         .list = list,
                                         .open_nodes = open_nodes};

    return worker_main(argc, argv, &engine);
}
