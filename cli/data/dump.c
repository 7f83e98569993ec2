/*
 * data/dump.c - writes an array or a region as a stream in C order. Memory does not grow
 * with the array: contiguous boxes of elements (cli_boxes) are read into one of two
 * buffers while the other is written. raw and npy are written directly, little-endian.
 * The text formats count the index of each element, which tells where rows and nested
 * lists begin and end, so a box may end anywhere.
 */
#include "cf/cf.h"
#include "data/data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* In the order of CLI_DUMP_FORMATS. */
enum style {
    STYLE_TEXT = 1,
    STYLE_CSV,
    STYLE_NPY,
    STYLE_RAW,
    STYLE_ELEMENTS,
    STYLE_JSON
};
enum {
    BLOCK_BYTES = 1 << 16,
    MEASURED = 1 << 16
};

/* One of the two buffers, with the read request that fills it. */
struct slot {
    unsigned char *data;
    zarr_memory device; /* where --memory wants the elements; empty: in data */
    struct cli_boxes box;
    zarr_selection *selection;
    zarr_request *request;
    zarr_heap *heap; /* of elements of variable length, else NULL */
    uint64_t shape[ZARR_MAX_RANK];
};

struct sink {
    const struct cli_dump *dump;
    enum style style;
    bool is_binary;         /* npy and raw */
    const zarr_dtype *type; /* that is written */
    size_t item_bytes;      /* of it */
    struct cf cf;           /* with --decode; else kind is CF_STORED */
    size_t stored_bytes;    /* of an element that is read */
    uint64_t n_joined;      /* elements of one item: characters, else 1 */
    struct cli_field field;
    int32_t ndim; /* the field's subarray included, without joined characters */
    uint64_t shape[ZARR_MAX_RANK], at[ZARR_MAX_RANK];
    size_t width; /* of a column of the format text */
    struct cli_string text, element;
    struct cli_json *head; /* of cat --json, until its last member is written */
    struct cli_memory memory;
    zarr_selection *outer; /* the region */
    struct cli_boxes boxes;
    uint64_t slot_bytes;
    struct slot slots[2];
    unsigned char *decoded; /* with --decode */
};

static int put(const struct sink *s, const void *data, size_t bytes)
{
    const struct cli_file *file = s->dump->file;

    if (!file || !file->path)
        return cli_out(s->dump->cli, data, bytes);
    if (cli_is_cancelled())
        return cli_error(s->dump->cli, CLI_INTERRUPTED, NULL, "interrupted");
    errno = 0;
    if (bytes && fwrite(data, 1, bytes, file->file) != bytes)
        return cli_errno(s->dump->cli, errno, "cannot write %s", file->path);
    return CLI_OK;
}

static int put_text(struct sink *s, bool all)
{
    size_t n = s->text.n_bytes;

    if (n == 0 || (n < BLOCK_BYTES && !all))
        return CLI_OK;
    s->text.n_bytes = 0;
    return put(s, s->text.text, n);
}

/* ---- one element ---- */

/* The number of innermost dimensions that begin at this element. */
static int32_t n_begin(const struct sink *s)
{
    int32_t n = 0;

    while (n < s->ndim && s->at[s->ndim - 1 - n] == 0)
        n++;
    return n;
}

/* Goes to the next element. Returns the number of innermost dimensions that ended. */
static int32_t step(struct sink *s)
{
    int32_t n = 0;

    while (n < s->ndim) {
        int32_t d = s->ndim - 1 - n;

        if (++s->at[d] < s->shape[d])
            break;
        s->at[d] = 0;
        n++;
    }
    return n;
}

static void add_plane_title(struct sink *s)
{
    cli_string_printf(&s->text, "# [");
    for (int32_t d = 0; d < s->ndim - 2; d++)
        cli_string_printf(&s->text, "%" PRIu64 ", ", s->at[d]);
    cli_string_printf(&s->text, ":, :]\n");
}

static void add_text(struct sink *s)
{
    int32_t ended;

    if (s->ndim > 2 && n_begin(s) >= 2)
        add_plane_title(s);
    if (s->ndim > 1 && s->at[s->ndim - 1] > 0)
        cli_string_add(&s->text, " ", 1);
    if (s->width > s->element.n_bytes)
        cli_string_printf(&s->text, "%*s", (int)(s->width - s->element.n_bytes), "");
    cli_string_add(&s->text, s->element.text, s->element.n_bytes);
    ended = step(s);
    if (s->ndim < 2 || ended > 0)
        cli_string_add(&s->text, "\n", 1);
}

static void add_csv(struct sink *s)
{
    if (s->ndim > 1 && s->at[s->ndim - 1] > 0)
        cli_string_add(&s->text, ",", 1);
    cli_csv_field(&s->element, s->ndim < 2 || s->shape[s->ndim - 1] == 1, &s->text);
    if (step(s) > 0 || s->ndim < 2)
        cli_string_add(&s->text, "\n", 1);
}

static void add_json(struct sink *s)
{
    int32_t begins = n_begin(s), ends;

    for (int32_t i = 0; i < begins; i++)
        cli_string_add(&s->text, "[", 1);
    cli_string_add(&s->text, s->element.text, s->element.n_bytes);
    ends = step(s);
    for (int32_t i = 0; i < ends; i++)
        cli_string_add(&s->text, "]", 1);
    if (ends < s->ndim)
        cli_string_add(&s->text, ends ? ",\n" : ", ", 2);
}

/* Escapes the line ends and tabs of an element: an element of text is in one line. */
static void join_lines(struct sink *s)
{
    struct cli_string line = {0};

    if (!strpbrk(s->element.text, "\t\n\r"))
        return;
    for (const char *t = s->element.text; *t; t++)
        if (strchr("\t\n\r", *t))
            cli_string_printf(&line, "\\x%02x", (unsigned char)*t);
        else
            cli_string_add(&line, t, 1);
    cli_string_free(&s->element);
    s->element = line;
}

/* Adds a date or the meanings of flags. Returns false for other elements. */
static bool add_meaning(struct sink *s, const unsigned char *data, bool quoted)
{
    struct cli_string text = {0};
    bool is_done = true;
    int64_t instant;

    if (s->cf.kind == CF_TIME) {
        memcpy(&instant, data, sizeof instant);
        cf_instant_print(s->cf.units.calendar, instant, &text);
    } else {
        is_done = cf_flags_print(&s->cf, data, &text);
    }
    if (is_done && quoted)
        cli_string_add_quoted(&s->element, text.text);
    else if (is_done)
        cli_string_add(&s->element, text.text, text.n_bytes);
    cli_string_free(&text);
    return is_done;
}

static int make_element(struct sink *s, const unsigned char *data)
{
    const bool readable = s->style == STYLE_TEXT || s->style == STYLE_CSV;
    int rc = CLI_OK;

    s->element.n_bytes = 0;
    cli_string_add(&s->element, "", 0);
    if (s->cf.type && add_meaning(s, data, !readable))
        return CLI_OK;
    if (readable)
        rc = cli_element_text(s->dump->cli, s->type, data, &s->element);
    if (!rc && s->style == STYLE_TEXT)
        join_lines(s);
    if (readable)
        return rc;
    return cli_element_json(s->dump->cli, s->type, data, &s->element);
}

/* Makes columns as wide as the widest of the first elements of this box. To measure all
 * would format every number twice; a wider one later only shifts its own line. */
static int measure(struct sink *s, const unsigned char *data, uint64_t n_items)
{
    int rc = CLI_OK;

    n_items = n_items < MEASURED ? n_items : MEASURED;
    for (uint64_t i = 0; i < n_items && !rc; i++) {
        rc = make_element(s, data + i * s->item_bytes);
        if (s->element.n_bytes > s->width)
            s->width = s->element.n_bytes;
    }
    return rc;
}

static int put_elements(struct sink *s, const unsigned char *data, uint64_t n_items)
{
    int rc = CLI_OK;

    if (s->style == STYLE_TEXT)
        rc = measure(s, data, n_items);
    for (uint64_t i = 0; i < n_items && !rc; i++) {
        rc = make_element(s, data + i * s->item_bytes);
        if (rc)
            break;
        if (s->style == STYLE_TEXT) {
            add_text(s);
        } else if (s->style == STYLE_CSV) {
            add_csv(s);
        } else if (s->style == STYLE_JSON) {
            add_json(s);
        } else {
            cli_string_add(&s->text, s->element.text, s->element.n_bytes);
            cli_string_add(&s->text, "\n", 1);
        }
        rc = put_text(s, false);
    }
    return rc ? rc : put_text(s, true);
}

/* ---- begin and end ---- */

/* The JSON of an array without elements, nested as by NumPy's tolist(). */
static void add_empty(struct sink *s)
{
    for (s->ndim = 0; s->shape[s->ndim] != 0;)
        s->ndim++;
    s->element.n_bytes = 0;
    cli_string_add(&s->element, "[]", 2);
    for (uint64_t n = cli_product(s->ndim, s->shape); n > 0; n--)
        add_json(s);
}

static int begin(struct sink *s)
{
    if (s->style == STYLE_NPY && !cli_npy_header(s->type, s->ndim, s->shape, &s->text))
        cli_warn(s->dump->cli, "NumPy has no data type %s: the file says opaque bytes",
                 cli_type_name(s->type));
    if (s->dump->wrap_json) {
        s->head = cli_json_start(s->dump->cli, &s->text, false);
        cli_json_object(s->head);
        cli_json_text(cli_key(s->head, "node"), s->dump->node->shown);
        cli_json_text(cli_key(s->head, "data_type"), cli_type_name(s->type));
        cli_json_shape(cli_key(s->head, "shape"), s->ndim, s->shape);
        cli_key(s->head, "data");
    }
    if (s->style == STYLE_JSON && cli_product(s->ndim, s->shape) == 0)
        add_empty(s);
    return put_text(s, true);
}

static int end(struct sink *s)
{
    if (s->head)
        (void)cli_json_finish(s->head);
    s->head = NULL;
    if (s->style == STYLE_JSON)
        cli_string_add(&s->text, "\n", 1);
    return put_text(s, true);
}

/* ---- the stream ---- */

static zarr_status start(struct sink *s, struct slot *slot, zarr_error *err)
{
    struct cli *cli = s->dump->cli;
    zarr_tensor tensor = {.struct_size = sizeof tensor};
    zarr_io_options opts;
    zarr_array *array = s->dump->node->array;
    zarr_status st;

    st = cli_boxes_select(&slot->box, s->outer, &slot->selection, err);
    if (st)
        return st;
    if (!slot->data)
        slot->data = cli_alloc((size_t)s->slot_bytes);
    cli_boxes_tensor(&slot->box, slot->data, s->slot_bytes, slot->shape, &tensor);
    cli_field_tensor(&s->field, slot->shape, &tensor);
    if (s->is_binary && s->cf.kind == CF_STORED)
        tensor.byte_order = ZARR_ORDER_LITTLE;
    opts = s->field.options;
    st = cli_memory_tensor(cli, &s->memory, s->slot_bytes, &slot->device, &tensor, err);
    if (!st)
        st = cli_heap(cli, s->type, &slot->heap, err);
    opts.heap = slot->heap;
    opts.trust = cli_trust(cli);
    if (cli_missing_is_error(cli))
        opts.missing_chunks = ZARR_MISSING_ERROR;
    opts.cancel = cli_cancel;
    return st ? st
              : zarr_array_read_submit(&slot->request, array, slot->selection, &tensor,
                                       &opts, err);
}

static void slot_clear(struct slot *slot)
{
    zarr_request_free(slot->request); /* waits for the request */
    zarr_selection_free(slot->selection);
    slot->request = NULL;
    slot->selection = NULL;
}

/* Waits for a read. Damage that is to be skipped is replaced, and the box read again. */
static zarr_status finish(struct sink *s, struct slot *slot, zarr_error *err)
{
    const struct cli_dump *dump = s->dump;
    zarr_status st = zarr_request_wait(slot->request, ZARR_WAIT_FOREVER, NULL, err);

    while (st && dump->lost && cli_is_damage(st, err)) {
        const zarr_error failed = *err;

        slot_clear(slot);
        st = cli_salvage_block(dump->cli, dump->node, &failed,
                               dump->lost_fill ? CLI_MEND_ERASE : CLI_MEND_NAN, err);
        *dump->lost = true;
        if (!st)
            st = start(s, slot, err);
        if (!st)
            st = zarr_request_wait(slot->request, ZARR_WAIT_FOREVER, NULL, err);
    }
    return st;
}

/* Writes the n elements of a box that was read. */
static int put_read(struct sink *s, const struct slot *slot, uint64_t n)
{
    const unsigned char *data = slot->data;

    n /= s->n_joined;
    if (s->cf.kind != CF_STORED) {
        cf_decode(&s->cf, data, n, s->decoded);
        if (s->is_binary)
            cli_elements_swap(s->type, NULL, ZARR_ORDER_LITTLE, s->decoded, n);
        data = s->decoded;
    }
    return s->is_binary ? put(s, data, (size_t)n * s->item_bytes)
                        : put_elements(s, data, n);
}

static int stream_all(struct sink *s)
{
    struct cli *cli = s->dump->cli;
    const uint64_t n_values = s->field.n_values;
    struct cli_progress progress = {0};
    bool more = cli_boxes_next(&s->boxes);
    uint64_t done = 0;
    unsigned n_boxes = 0;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;
    int rc = CLI_OK;

    s->slots[0].box = s->boxes;
    if (more)
        st = start(s, &s->slots[0], &err);
    if (s->dump->progress)
        cli_progress_begin(
            &progress, cli, s->dump->progress,
            cli_mul(zarr_selection_n_items(s->outer), n_values * s->stored_bytes), 0);
    for (; more && !st && !rc; n_boxes++) {
        struct slot *now = &s->slots[n_boxes % 2], *next = &s->slots[(n_boxes + 1) % 2];
        const uint64_t n = now->box.n_items * n_values;

        st = finish(s, now, &err);
        if (!st)
            st = cli_memory_download(cli, &now->device, now->data, n * s->stored_bytes,
                                     &err);
        more = cli_boxes_next(&s->boxes);
        next->box = s->boxes;
        if (!st && more)
            st = start(s, next, &err);
        if (!st)
            rc = put_read(s, now, n);
        done += n * s->stored_bytes;
        slot_clear(now);
        cli_progress_update(&progress, done, 0);
    }
    if (!st && !rc && n_boxes > 1) /* a shrink between two reads may have cut chunks */
        st = zarr_array_recheck(s->dump->node->array, cli_cancel, &err);
    cli_progress_end(&progress, !st && !rc);
    return st ? cli_fail_array(cli, s->dump->node->array, st, &err, "cannot read %s",
                               s->dump->node->shown)
              : rc;
}

static int stream(struct sink *s)
{
    struct cli *cli = s->dump->cli;
    const struct cli_node *node = s->dump->node;
    const uint64_t *unit = node->region ? NULL : zarr_array_chunk_shape(node->array);
    const bool decodes = s->cf.kind != CF_STORED;
    const uint64_t bytes = s->field.n_values * s->stored_bytes;
    const uint64_t more = decodes ? s->field.n_values * s->item_bytes : 0;
    uint64_t max_items = cli_buffer_bytes(cli) / (2 * bytes + more);
    int rc;

    max_items = max_items < s->n_joined ? s->n_joined : max_items;
    cli_boxes_init(&s->boxes, zarr_selection_ndim(s->outer),
                   zarr_selection_shape(s->outer), unit, max_items, true);
    s->slot_bytes = cli_boxes_max_items(&s->boxes) * bytes;
    if (decodes)
        s->decoded = cli_alloc((size_t)(cli_boxes_max_items(&s->boxes) * more) + 1);
    rc = cli_memory_find(cli, &s->memory);
    if (!rc)
        rc = begin(s);
    if (!rc)
        rc = stream_all(s);
    return rc ? rc : end(s);
}

/* CSV with more than two dimensions. The hint suggests a region, which can only reduce
 * the dimensions of the array, not those of a subarray field. */
static int refuse_csv(const struct sink *s)
{
    const int32_t ndim = zarr_array_ndim(s->dump->node->array);
    const int32_t keep = 2 - s->field.ndim; /* dimensions of the array */
    static const char *const what[] = {"an element", "a row", "a plane"};
    struct cli_string hint = {0};
    int rc;

    if (keep >= 0 && keep <= ndim) {
        cli_string_printf(&hint, "Choose %s: NODE[", what[keep]);
        for (int32_t d = 0; d < ndim; d++)
            cli_string_printf(&hint, "%s%s", d > 0 ? "," : "",
                              d < ndim - keep ? "0" : ":");
        cli_string_printf(&hint, "].%s", s->field.ndim > 0 ? " Or --format=json." : "");
    } else {
        cli_string_printf(&hint, "Choose --format=json (or text, npy, elements).");
    }
    if (s->field.ndim > 0)
        rc = cli_error(s->dump->cli, CLI_USAGE, hint.text,
                       "csv has rows and columns, not %d dimensions: %d of them are of "
                       "field %s, a subarray",
                       (int)s->ndim, (int)s->field.ndim, s->field.options.field);
    else
        rc = cli_error(s->dump->cli, CLI_USAGE, hint.text,
                       "csv has rows and columns, not %d dimensions", (int)s->ndim);
    cli_string_free(&hint);
    return rc;
}

/* Whether a region takes one index along the last dimension, which it removes. */
static bool drops_last(const char *region, int32_t ndim)
{
    char *items[ZARR_MAX_RANK];
    bool drops;

    cf_region_split(region, ndim, items);
    drops = !strpbrk(items[ndim - 1], ":[");
    for (int32_t d = 0; d < ndim; d++)
        free(items[d]);
    return drops;
}

/* Finds what --decode makes of the elements. */
static int find_decoding(struct sink *s)
{
    const struct cli_node *node = s->dump->node;
    int rc = cf_find(s->dump->cli, node->array, s->type, node->shown, &s->cf);
    char name[32];

    if (rc)
        return rc;
    if (s->is_binary && zarr_dtype_kind(s->type) == ZARR_KIND_DATETIME)
        s->cf.kind = CF_STORED; /* keeps nanoseconds */
    else
        s->type = s->cf.decoded;
    if (s->is_binary && s->cf.kind == CF_TIME && s->cf.units.calendar > CF_PROLEPTIC)
        return cli_error(s->dump->cli, CLI_UNSUPPORTED,
                         "Choose --format=elements (or text, csv, json).",
                         "%s: the format %s has only dates of the Gregorian calendar",
                         node->shown, s->dump->format);
    if (s->cf.joins && !drops_last(node->region, zarr_array_ndim(node->array)) &&
        s->shape[s->ndim - 1] <= cli_buffer_bytes(s->dump->cli) / 32)
        s->n_joined = s->shape[--s->ndim] ? s->shape[s->ndim] : 1;
    if (s->cf.joins)
        s->cf.value_bytes = s->n_joined;
    if (!s->is_binary || s->cf.kind != CF_TEXT)
        return CLI_OK;
    s->cf.kind = CF_STORED;
    (void)snprintf(name, sizeof name, "|S%" PRIu64, s->cf.value_bytes);
    return zarr_dtype_find(&s->type, s->dump->cli->ctx, name, NULL) == ZARR_OK
               ? CLI_OK
               : cli_error(s->dump->cli, CLI_UNSUPPORTED, NULL, "%s: no type %s",
                           node->shown, name);
}

static void sink_free(struct sink *s)
{
    for (int i = 0; i < 2; i++) {
        slot_clear(&s->slots[i]);
        zarr_heap_free(s->slots[i].heap);
        zarr_memory_free(s->dump->cli->ctx, &s->slots[i].device);
        free(s->slots[i].data);
    }
    if (s->head)
        (void)cli_json_finish(s->head);
    zarr_selection_free(s->outer);
    cf_free(&s->cf);
    free(s->decoded);
    cli_string_free(&s->text);
    cli_string_free(&s->element);
}

/* Finds out what to write. */
static int prepare(struct sink *s)
{
    const struct cli_node *node = s->dump->node;
    int rc = cli_field_find(s->dump->cli, node, &s->field);

    if (!rc)
        rc = cli_node_select(s->dump->cli, node, node->array, &s->outer);
    if (rc)
        return rc;
    s->type = s->field.type;
    s->stored_bytes = (size_t)zarr_dtype_item_bytes(s->type);
    s->n_joined = 1;
    s->ndim = zarr_selection_ndim(s->outer);
    memcpy(s->shape, zarr_selection_shape(s->outer), (size_t)s->ndim * sizeof *s->shape);
    for (int32_t d = 0; d < s->field.ndim && s->ndim < ZARR_MAX_RANK; d++)
        s->shape[s->ndim++] = s->field.shape[d];
    if (cf_is_wanted(s->dump->cli))
        rc = find_decoding(s);
    s->item_bytes = (size_t)zarr_dtype_item_bytes(s->type);
    return rc;
}

int cli_dump(const struct cli_dump *dump)
{
    struct sink s = {.dump = dump,
                     .style = cli_choice_place(CLI_DUMP_FORMATS, dump->format)};
    int rc;

    s.is_binary = s.style == STYLE_NPY || s.style == STYLE_RAW;
    rc = prepare(&s);
    if (!rc && s.is_binary && zarr_dtype_variable(s.type))
        rc = cli_error(dump->cli, CLI_UNSUPPORTED,
                       "Choose --format=elements (or text, csv, json).",
                       "%s: the format %s cannot hold elements of variable length",
                       dump->node->shown, dump->format);
    else if (!rc && s.style == STYLE_CSV && s.ndim > 2)
        rc = refuse_csv(&s);
    else if (!rc)
        rc = stream(&s);
    sink_free(&s);
    return rc;
}
