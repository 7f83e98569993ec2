/*
 * commands/cmd_append.c - zarrc append: appends elements of a file or of stdin to an
 * array along one axis. A file is appended in one call, data first and metadata last, so
 * that readers see all of it or nothing. A stream, for instance of a sensor, is appended
 * in pieces until it ends; readers see each piece completely or not at all.
 */
#include "data/data.h"
#include "node/work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct cli_option options[] = {
    {"axis", 0, 0, "N", NULL,
     "the dimension that grows; negative numbers count from the last (default: 0)"},
    {"format", 'F', 0, "FORMAT", "npy|raw|" CLI_TEXT_FORMATS,
     "format of FILE (default: npy if it begins like a .npy file, else raw); json: a "
     "nested JSON array; elements: one JSON value a line; lines: one text a line"},
    {"byte-order", 0, 0, "ORDER", "little|big",
     "raw: byte order of FILE (default: little)"},
    CLI_CONSOLIDATED_OPTION,
    {NULL, 0, 0, NULL, NULL, NULL}};

static const struct cli_example examples[] = {
    {"zarrc append x.zarr/temp day.npy", "Append along the first dimension."},
    {"sensor | zarrc append --format=raw x.zarr/temp -",
     "Append a stream of little-endian elements until it ends."},
    {"zarrc append --format=lines x.zarr/names new.txt", "Append each line as one text."},
    {NULL, NULL}};

/* A .npy or raw file: a regular file is mapped, a stream is read in pieces. */
struct input {
    struct cli_source source;
    bool is_npy, fortran;
    uint32_t byte_order; /* ZARR_ORDER_* */
    const zarr_dtype *dtype;
    int32_t ndim; /* 0, without a shape, for a raw file */
    uint64_t shape[ZARR_MAX_RANK];
    uint64_t data_at, data_bytes; /* data_bytes: UINT64_MAX if it is not known */
    void *map;                    /* NULL for a stream */
    uint64_t map_bytes;
};

struct appending {
    struct cli *cli;
    struct cli_node node;
    struct input in;
    int32_t ndim, axis;
    const zarr_dtype
        *file_type;     /* in a .npy header that stands for the array's type, or NULL */
    uint64_t row_bytes; /* bytes of one step along the axis */
    uint64_t added;
    /* where the steps are now: other programs may append between pieces of a stream */
    uint64_t (*range)[2];
    size_t n_ranges;
};

/* ---- the file ---- */

static int read_header(struct cli *cli, struct input *in)
{
    struct cli_npy npy;
    bool is_big;
    int rc = cli_npy_read(cli, &in->source, &npy);

    if (rc)
        return rc;
    in->fortran = npy.fortran;
    in->byte_order = npy.type[0] == '>' ? ZARR_ORDER_BIG : ZARR_ORDER_LITTLE;
    is_big = npy.fields && strstr(npy.fields, "\">");
    if (is_big || cli_fields_have_padding(npy.fields)) { /* the file is not converted */
        free(npy.fields);
        return cli_error(cli, CLI_UNSUPPORTED,
                         "zarrc import can write it into a region of the array.",
                         "%s has %s fields", in->source.name,
                         is_big ? "big-endian" : "padding between its");
    }
    in->ndim = npy.ndim;
    in->data_at = npy.data_offset;
    memcpy(in->shape, npy.shape, sizeof in->shape);
    rc = cli_file_type(cli, in->source.name, npy.fields ? npy.fields : npy.type,
                       &in->dtype);
    free(npy.fields);
    return rc;
}

static int map_file(struct cli *cli, struct input *in)
{
    const int fd = in->source.fd;
    struct stat st;

    in->data_bytes = UINT64_MAX;
    if (fstat(fd, &st) != 0)
        return cli_errno(cli, errno, "cannot read %s", in->source.name);
    if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size < in->data_at)
        return CLI_OK;
    in->data_bytes = (uint64_t)st.st_size - in->data_at;
    in->map_bytes = (uint64_t)st.st_size;
    if (in->data_bytes == 0)
        return CLI_OK;
    in->map = mmap(NULL, (size_t)in->map_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
    if (in->map == MAP_FAILED) { /* read it as a stream */
        in->map = NULL;
        in->data_bytes = UINT64_MAX;
    }
    return CLI_OK;
}

static int check_length(struct cli *cli, struct input *in)
{
    const uint64_t need =
        cli_mul(cli_product(in->ndim, in->shape), zarr_dtype_item_bytes(in->dtype));

    if (in->data_bytes < need)
        return cli_error(cli, CLI_CORRUPT, NULL,
                         "%s is too short: %" PRIu64 " bytes of elements, %" PRIu64
                         " expected",
                         in->source.name, in->data_bytes, need);
    if (in->data_bytes != UINT64_MAX) /* another file may follow in the same stream */
        in->data_bytes = need;
    return CLI_OK;
}

/* format: "npy", "raw", or NULL: npy if the file begins like one, else raw. */
static int open_input(struct cli *cli, const char *name, const char *format,
                      struct input *in)
{
    int byte = format && *format == 'n' ? 0x93 : 0;
    off_t begin;
    int rc = cli_source_open(cli, name, &in->source);

    in->byte_order = ZARR_ORDER_LITTLE;
    if (rc)
        return rc;
    begin = lseek(in->source.fd, 0, SEEK_CUR);
    if (!format)
        rc = cli_source_peek(cli, &in->source, &byte);
    in->is_npy = byte == 0x93;
    if (!rc && in->is_npy)
        rc = read_header(cli, in);
    in->data_at += begin > 0 ? (uint64_t)begin : 0; /* what is before it was read */
    if (!rc)
        rc = map_file(cli, in);
    if (!rc && in->is_npy)
        rc = check_length(cli, in);
    return rc;
}

static void close_input(struct input *in)
{
    if (in->map && in->source.fd == STDIN_FILENO) /* the next program reads on after it */
        (void)lseek(in->source.fd, (off_t)(in->data_at + in->data_bytes), SEEK_SET);
    if (in->map)
        munmap(in->map, (size_t)in->map_bytes);
    cli_source_close(&in->source);
}

/* ---- checks of the file against the array ---- */

static int read_axis(struct appending *a)
{
    int64_t axis = 0;
    int rc = cli_i64(a->cli, "axis", &axis);

    a->ndim = zarr_array_ndim(a->node.array);
    if (a->ndim == 0)
        return cli_error(a->cli, CLI_USAGE, NULL, "%s is a scalar and cannot grow",
                         a->node.shown);
    if (!rc && axis < 0)
        axis += a->ndim;
    if (!rc && (axis < 0 || axis >= a->ndim))
        rc = cli_error(a->cli, CLI_USAGE, NULL,
                       "option --axis: the array has %d dimensions", (int)a->ndim);
    a->axis = (int32_t)axis;
    return rc;
}

/* Checks the data type and shape of the file. A file with one dimension less is one step
 * along the axis. */
static int match_npy(struct appending *a)
{
    const uint64_t *want = zarr_array_shape(a->node.array);
    const zarr_dtype *type = zarr_array_dtype(a->node.array);
    struct input *in = &a->in;
    bool ok;

    if (cli_npy_represents(in->dtype, type)) {
        a->file_type = in->dtype;
        in->dtype = type;
    }
    if (!zarr_dtype_equal(in->dtype, type))
        return cli_error(a->cli, CLI_USAGE, NULL, "%s has data type %s, the array has %s",
                         in->source.name, cli_type_name(in->dtype), cli_type_name(type));
    if (in->ndim == a->ndim - 1) {
        memmove(&in->shape[a->axis + 1], &in->shape[a->axis],
                (size_t)(in->ndim - a->axis) * sizeof *in->shape);
        in->shape[a->axis] = 1;
        in->ndim++;
    }
    ok = in->ndim == a->ndim;
    for (int32_t d = 0; ok && d < a->ndim; d++)
        ok = d == a->axis || in->shape[d] == want[d];
    if (!ok) {
        char *has = cli_shape_text(in->ndim, in->shape);
        char *needs = cli_shape_text(a->ndim, want);

        cli_error(a->cli, CLI_USAGE, NULL,
                  "%s has shape %s, which does not fit %s along axis %d", in->source.name,
                  has, needs, (int)a->axis);
        free(has);
        free(needs);
    }
    return ok ? CLI_OK : CLI_USAGE;
}

static int match_raw(struct appending *a)
{
    struct input *in = &a->in;
    const uint32_t order = cli_choice(a->cli, "byte-order"); /* as ZARR_ORDER_* */

    in->dtype = zarr_array_dtype(a->node.array);
    if (order)
        in->byte_order = order;
    in->ndim = a->ndim;
    memcpy(in->shape, zarr_array_shape(a->node.array),
           (size_t)a->ndim * sizeof *in->shape);
    if (in->data_bytes == UINT64_MAX)
        return CLI_OK;
    if (a->row_bytes == 0 || in->data_bytes % a->row_bytes != 0)
        return cli_error(a->cli, CLI_USAGE, NULL,
                         "%s has %" PRIu64 " bytes, not a multiple of the %" PRIu64
                         " of one step along axis %d",
                         in->source.name, in->data_bytes, a->row_bytes, (int)a->axis);
    in->shape[a->axis] = in->data_bytes / a->row_bytes;
    return CLI_OK;
}

static int match(struct appending *a)
{
    const zarr_dtype *type = zarr_array_dtype(a->node.array);
    uint64_t one[ZARR_MAX_RANK];

    memcpy(one, zarr_array_shape(a->node.array), (size_t)a->ndim * sizeof *one);
    one[a->axis] = 1;
    a->row_bytes = cli_mul(cli_product(a->ndim, one), zarr_dtype_item_bytes(type));
    if (a->row_bytes == 0 && !zarr_dtype_variable(type))
        return cli_error(a->cli, CLI_UNSUPPORTED, "zarrc resize makes it longer.",
                         "one step of %s along axis %d has no elements", a->node.shown,
                         (int)a->axis);
    if (a->row_bytes == UINT64_MAX || zarr_dtype_variable(type))
        return cli_error(a->cli, CLI_UNSUPPORTED,
                         "Use a text file with --format=lines, elements or json.",
                         "elements of type %s cannot be appended from a file of raw "
                         "elements",
                         cli_type_name(type));
    return a->in.is_npy ? match_npy(a) : match_raw(a);
}

/* Notes where the steps are that were just appended. */
static void note_range(struct appending *a, uint64_t first, uint64_t steps)
{
    const uint64_t end = first + steps;

    a->added += steps;
    if (a->n_ranges > 0 && a->range[a->n_ranges - 1][1] == first) {
        a->range[a->n_ranges - 1][1] = end;
        return;
    }
    a->range = cli_realloc(a->range, (a->n_ranges + 1) * sizeof *a->range);
    a->range[a->n_ranges][0] = first;
    a->range[a->n_ranges++][1] = end;
}

static int append_tensor(struct appending *a, void *data, uint64_t bytes, uint64_t steps)
{
    uint64_t stride = zarr_dtype_item_bytes(a->in.dtype), first = 0;
    int64_t strides[ZARR_MAX_RANK];
    zarr_io_options io = ZARR_IO_OPTIONS_INIT;
    zarr_tensor src;
    zarr_error err = {0};
    zarr_status st;

    if (a->file_type && !cli_npy_fits(a->file_type, a->in.dtype, data, bytes / stride))
        return cli_error(a->cli, CLI_CORRUPT, NULL,
                         "%s has a value that is not a valid %s", a->in.source.name,
                         cli_type_name(a->in.dtype));
    a->in.shape[a->axis] = steps;
    for (int32_t i = 0; i < a->ndim; i++) {
        int32_t d = a->in.fortran ? i : a->ndim - 1 - i;

        strides[d] = (int64_t)stride;
        stride *= a->in.shape[d];
    }
    zarr_tensor_host(&src, NULL, data, bytes, a->ndim, a->in.shape);
    src.strides = strides;
    src.dtype = a->in.dtype;
    src.byte_order = a->in.byte_order;
    io.cancel = cli_cancel;
    a->node.began = true;
    st = zarr_array_append(a->node.array, a->axis, &src, &first, &io, &err);
    if (st)
        return cli_fail_array(a->cli, a->node.array, st, &err, "cannot append to %s",
                              a->node.shown);
    note_range(a, first, steps);
    return CLI_OK;
}

/* The number of steps in one piece of a stream. A piece ends at the end of a chunk or
 * shard, so that none is written twice. */
static uint64_t piece_steps(const struct appending *a)
{
    const uint64_t *unit = zarr_array_block_shape(a->node.array);
    uint64_t fit = cli_buffer_bytes(a->cli) / a->row_bytes;
    uint64_t largest[ZARR_MAX_RANK], n = unit && unit[a->axis] ? unit[a->axis] : 1;
    uint64_t old = zarr_array_shape(a->node.array)[a->axis];

    if (fit < 1)
        fit = 1;
    if (!unit) { /* irregular chunks: a piece may become a chunk, so it is as large */
        zarr_array_block_largest(a->node.array, largest);
        return largest[a->axis] < fit ? largest[a->axis] : fit;
    }
    return n - old % n < fit ? n - old % n : fit;
}

static int append_stream(struct appending *a)
{
    uint64_t left = a->in.is_npy ? a->in.shape[a->axis] : UINT64_MAX;
    struct cli_progress progress;
    void *buffer = NULL;
    int rc = CLI_OK;

    if (a->axis != 0 || a->in.fortran)
        return cli_error(a->cli, CLI_USAGE, "Write the elements to a file first.",
                         "a stream can only be appended along axis 0, in C order");
    cli_progress_begin(&progress, a->cli, "append", 0, 0);
    while (!rc && left > 0) {
        uint64_t steps = piece_steps(a);
        size_t bytes;

        steps = steps < left ? steps : left;
        buffer = cli_realloc(buffer, (size_t)(steps * a->row_bytes));
        bytes = steps * a->row_bytes;
        rc = cli_source_read(a->cli, &a->in.source, buffer, &bytes);
        if (bytes >= a->row_bytes && !rc)
            rc = append_tensor(a, buffer, bytes - bytes % a->row_bytes,
                               bytes / a->row_bytes);
        if (!rc && bytes % a->row_bytes)
            rc = cli_error(a->cli, CLI_CORRUPT, "The complete steps were appended.",
                           "%s ends inside a step", a->in.source.name);
        cli_progress_update(&progress, a->added * a->row_bytes, 0);
        left -= left == UINT64_MAX ? 0 : steps;
        if (bytes < steps * a->row_bytes)
            break;
    }
    cli_progress_end(&progress, rc == CLI_OK);
    if (!rc && left > 0 && left != UINT64_MAX)
        rc = cli_error(a->cli, CLI_CORRUPT, "The steps before were appended.",
                       "%s ends before its last step", a->in.source.name);
    free(buffer);
    return rc;
}

static void report(struct appending *a)
{
    struct cli *cli = a->cli;
    char *shape = cli_shape_text(a->ndim, zarr_array_shape(a->node.array));
    struct cli_string places = {0}; /* "100:104, 108:112" */

    cli_string_add(&places, "", 0);
    for (size_t i = 0; i < a->n_ranges; i++)
        cli_string_printf(&places, "%s%" PRIu64 ":%" PRIu64, i ? ", " : "",
                          a->range[i][0], a->range[i][1]);
    if (cli->json) {
        struct cli_json *j = cli_json_node(cli, a->node.shown);

        cli_json_u64(cli_key(j, "appended"), a->added);
        cli_json_i64(cli_key(j, "axis"), a->axis);
        cli_json_shape(cli_key(j, "shape"), a->ndim, zarr_array_shape(a->node.array));
        cli_json_array(cli_key(j, "ranges"));
        for (size_t i = 0; i < a->n_ranges; i++)
            cli_json_shape(j, 2, a->range[i]);
    }
    cli_say(cli, "%s: appended %" PRIu64 " along axis %d%s%s, new shape %s",
            a->node.shown, a->added, (int)a->axis, a->n_ranges ? " at " : "", places.text,
            shape);
    cli_string_free(&places);
    free(shape);
}

/* Appends a text file. Lines have one dimension; a JSON array can have any number. */
static int append_text(struct appending *a, const char *format)
{
    struct cli *cli = a->cli;
    struct cli_elements e = {0};
    int rc = cli_source_open(cli, cli->args[1], &a->in.source);

    if (rc)
        return rc;
    a->in.dtype = zarr_array_dtype(a->node.array);
    rc = cli_elements_read(cli, &a->in.source, format, a->in.dtype, -1, &e);
    a->in.ndim = e.ndim;
    memcpy(a->in.shape, e.shape, sizeof e.shape);
    if (!rc)
        rc = match_npy(a);
    if (!rc && e.n > 0)
        rc = append_tensor(a, e.data, e.n * e.item_bytes, a->in.shape[a->axis]);
    cli_elements_free(&e);
    return rc;
}

static int append_file(struct appending *a, const char *format)
{
    int rc = open_input(a->cli, a->cli->args[1], format, &a->in);

    if (!rc)
        rc = match(a);
    if (rc)
        return rc;
    if (a->in.data_bytes == UINT64_MAX)
        return append_stream(a);
    return a->in.shape[a->axis] == 0
               ? CLI_OK
               : append_tensor(a, (char *)a->in.map + a->in.data_at, a->in.data_bytes,
                               a->in.shape[a->axis]);
}

static int run(struct cli *cli)
{
    struct appending a = {.cli = cli};
    const char *format = cli_text(cli, "format");
    int rc = cli_node_open(cli, cli->args[0], CLI_OPEN_ARRAY | CLI_OPEN_WRITE, &a.node);

    if (!rc)
        rc = read_axis(&a);
    if (!rc)
        rc = (cli_is_text_format(format) ? append_text : append_file)(&a, format);
    if (!rc)
        rc = cli_node_flush(cli, &a.node);
    if (!rc)
        report(&a);
    if (a.node.began)
        rc = cli_update_after(cli, &a.node, false, rc);
    free(a.range);
    close_input(&a.in);
    cli_node_close(&a.node);
    return rc;
}

const struct cli_command cli_cmd_append = {
    .name = "append",
    .summary = "append elements from a file or stdin",
    .operands = "NODE FILE",
    .min_args = 2,
    .max_args = 2,
    .about =
        "Appends the elements of FILE to an array along one axis. FILE is a .npy file, a "
        "raw file of the array's data type, or text; - is standard input. The lengths of "
        "the other dimensions must be equal. A .npy file with one dimension less is one "
        "step along the axis.\n\n"
        "A file is appended as a whole: its chunks are written first and the new shape "
        "last, so that readers see all of it or nothing. A stream is appended along axis "
        "0 in pieces of whole chunks.",
    .json = "node; appended: steps along the axis; axis; shape: the new shape; ranges: "
            "where the steps are along the axis, a list of [first, end] (more than one "
            "only if another program appended between pieces of a stream).",
    .options = options,
    .examples = examples,
    .see_also = "zarrc-resize zarrc-import",
    .run = run,
};
