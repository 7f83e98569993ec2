/*
 * hostile/probe.c - what a careful reader does to a store: open the array "a", read all
 * of it (or its first 64 MiB), read one element at each end, list, verify, check
 * consolidated metadata, and last write one element. Prints one line for each step,
 * "step<TAB>status<TAB>milliseconds<TAB>message or value", and a last one with the peak
 * of resident memory in KiB. test_hostile.py judges the results. Usage: hostile_probe
 * <store> [untrusted]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <zarrc/zarrc.h>

enum {
    MAX_READ_BYTES = 64 << 20,
    MAX_TEXT = 120
};

static double step_began;
static zarr_io_options io = ZARR_IO_OPTIONS_INIT; /* with a heap for text */

static double now_ms(void)
{
    struct timespec t;

    /* CPU time of this process, because other tests run at the same time; the test kills
     * a process that hangs */
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void begin(void)
{
    step_began = now_ms();
}

static void say(const char *step, zarr_status st, const char *text)
{
    if (st == ZARR_OK && strstr(text, ": "))
        st = ZARR_ERR_INTERNAL; /* success does not change the error struct */
    printf("%s\t%s\t%.1f\t%s\n", step, zarr_status_text(st), now_ms() - step_began, text);
    fflush(stdout);
}

/* getrusage() would include the peak of the parent, which exec keeps. */
static void say_peak(void)
{
    char line[256];
    FILE *file = fopen("/proc/self/status", "r");

    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, "VmHWM:", 6))
            printf("peak\t%s\n", strtok(line + 6, " \tk"));
    if (file)
        fclose(file);
}

/* ---- elements --------------------------------------------------------------- */

/* Limits count to MAX_READ_BYTES. Returns the number of bytes. */
static uint64_t fit_box(const zarr_array *a, uint64_t *count)
{
    const int32_t ndim = zarr_array_ndim(a);
    const uint64_t *shape = zarr_array_shape(a);
    uint64_t bytes = zarr_dtype_item_bytes(zarr_array_dtype(a));

    for (int32_t d = ndim - 1; d >= 0; d--) {
        count[d] = shape[d];
        if (bytes && count[d] > MAX_READ_BYTES / bytes)
            count[d] = MAX_READ_BYTES / bytes ? MAX_READ_BYTES / bytes : 1;
        bytes *= count[d];
    }
    return bytes;
}

/* The first element as text, and whether all others equal it. */
static void describe(const zarr_array *a, const char *data, uint64_t bytes, char *text,
                     size_t cap)
{
    const zarr_dtype *dtype = zarr_array_dtype(a);
    const uint64_t item = zarr_dtype_item_bytes(dtype);
    uint64_t same = 1;

    snprintf(text, cap, "empty");
    if (!item || bytes < item || zarr_dtype_print(dtype, data, text, cap, NULL, NULL))
        return;
    while (same < bytes / item && !memcmp(data, data + same * item, item))
        same++;
    if (same < bytes / item)
        snprintf(text + strlen(text), cap - strlen(text), " and others");
}

static void read_box(const char *step, zarr_array *a, const uint64_t *start,
                     const uint64_t *count, uint64_t bytes)
{
    const int32_t ndim = zarr_array_ndim(a);
    uint64_t shape[ZARR_MAX_RANK];
    char text[MAX_TEXT + 16];
    zarr_selection *sel = NULL;
    zarr_error err = {0};
    zarr_tensor t;
    zarr_status st;
    char *data = malloc(bytes ? bytes : 1);

    begin();
    for (int32_t d = 0; d < ndim; d++)
        shape[d] = count[d];
    zarr_tensor_host(&t, NULL, data, bytes, ndim, shape);
    st = zarr_selection_box(&sel, ndim, zarr_array_shape(a), start, count, &err);
    if (st == ZARR_OK)
        st = zarr_array_read(a, sel, &t, &io, &err);
    if (st == ZARR_OK)
        describe(a, data, bytes, text, MAX_TEXT);
    say(step, st, st == ZARR_OK && !err.message[0] ? text : err.message);
    zarr_selection_free(sel);
    free(data);
}

static void write_one(zarr_array *a)
{
    const uint64_t item = zarr_dtype_item_bytes(zarr_array_dtype(a));
    const int32_t ndim = zarr_array_ndim(a);
    uint64_t start[ZARR_MAX_RANK] = {0}, count[ZARR_MAX_RANK];
    uint64_t shape[ZARR_MAX_RANK];
    zarr_selection *sel = NULL;
    zarr_error err = {0};
    zarr_tensor t;
    zarr_status st;
    char *data = calloc(1, item ? item : 1);
    const zarr_vlen five = {"5", 1};

    begin();
    for (int32_t d = 0; d < ndim; d++)
        shape[d] = 1, count[d] = 1;
    data[0] = 5;
    if (zarr_dtype_variable(zarr_array_dtype(a)))
        memcpy(data, &five, sizeof five);
    zarr_tensor_host(&t, NULL, data, item, ndim, shape);
    st = zarr_selection_box(&sel, ndim, zarr_array_shape(a), start, count, &err);
    if (st == ZARR_OK)
        st = zarr_array_write(a, sel, &t, NULL, &err);
    say("write", st, err.message);
    zarr_selection_free(sel);
    free(data);
}

static void read_all(zarr_array *a)
{
    const int32_t ndim = zarr_array_ndim(a);
    const uint64_t *shape = zarr_array_shape(a);
    const uint64_t item = zarr_dtype_item_bytes(zarr_array_dtype(a));
    uint64_t start[ZARR_MAX_RANK] = {0}, count[ZARR_MAX_RANK] = {0},
             one[ZARR_MAX_RANK] = {0};
    const uint64_t bytes = fit_box(a, count);

    read_box("read", a, start, count, bytes);
    if (!bytes)
        return;
    for (int32_t d = 0; d < ndim; d++)
        one[d] = 1;
    read_box("first", a, start, one, item);
    for (int32_t d = 0; d < ndim; d++)
        start[d] = shape[d] - 1;
    read_box("last", a, start, one, item);
}

/* ---- looking around ------------------------------------------------------------ */

static int count_chunk(void *user, const zarr_block_info *chunk)
{
    (void)chunk;
    return ++*(uint64_t *)user > 100000;
}

struct faults {
    uint64_t n;
    zarr_status first;
    char text[700];
};

static int count_fault(void *user, const zarr_verify_item *item)
{
    struct faults *f = user;

    if (f->n++ == 0) {
        f->first = item->status;
        snprintf(f->text, sizeof f->text, "%s: %s", item->key, item->message);
    }
    return 0;
}

static void inspect(zarr_array *a)
{
    struct faults faults = {0};
    zarr_error err = {0};
    zarr_status st;
    uint64_t n = 0;
    char text[64];

    begin();
    st = zarr_array_list_blocks(a, ZARR_BLOCKS_CHUNKS, count_chunk, &n, NULL, &err);
    snprintf(text, sizeof text, "%" PRIu64 " chunks", n);
    say("chunks", st, st == ZARR_OK ? text : err.message);
    begin();
    err = (zarr_error){0};
    st = zarr_array_verify(a, count_fault, &faults, NULL, &err);
    say("verify", st, err.message);
    say("fault", faults.first, faults.text);
    begin();
    say("texts",
        zarr_array_metadata(a) && zarr_array_codecs(a) ? ZARR_OK : ZARR_ERR_NO_MEMORY,
        "");
}

static int count_node(void *user, const zarr_node_item *node)
{
    (void)node;
    return ++*(uint64_t *)user > 1000000;
}

static int count_difference(void *user, const char *path, const char *what)
{
    (void)path;
    (void)what;
    return ++*(uint64_t *)user > 1000000;
}

static void open_children(zarr_group *g)
{
    zarr_error err = {0};
    zarr_array *a = NULL;
    zarr_status st;

    begin();
    st = zarr_group_open_array(&a, g, "a", NULL, &err);
    say("child", st, err.message);
    zarr_array_free(a);
}

static int first_strict(void *text, const zarr_finding *f)
{
    if (f->what != ZARR_FINDING_STRICT)
        return 0;
    snprintf(text, 256, "%s /%s %s", zarr_status_text(f->status), f->path, f->message);
    return 1;
}

/* The first fault that only strict readers see. */
static void look_strictly(zarr_store *store)
{
    zarr_verify_options opts = ZARR_VERIFY_OPTIONS_INIT;
    zarr_error err = {0};
    char text[256] = "";
    zarr_status st;

    opts.flags = ZARR_VERIFY_STRICT | ZARR_VERIFY_NO_DATA;
    opts.tell = first_strict;
    opts.tell_user = text;
    begin();
    st = zarr_node_verify(store, "a", NULL, &opts, &err);
    printf("strict\t%s\t0\t%s\n", zarr_status_text(st),
           st == ZARR_OK ? text : err.message);
}

static void look_around(zarr_store *store)
{
    const zarr_group_open_options never = {.struct_size = sizeof never,
                                           .consolidated = ZARR_CONSOLIDATED_NEVER};
    zarr_error err = {0};
    zarr_group *g = NULL;
    zarr_status st;
    uint64_t n = 0;
    char text[64];

    begin();
    st = zarr_group_open(&g, store, "", NULL, &err);
    say("group", st, err.message);
    if (st == ZARR_OK) {
        begin();
        st = zarr_group_list(g, count_node, &n, NULL, &err);
        say("list", st, err.message);
        begin();
        n = 0;
        st = zarr_group_walk(g, count_node, &n, NULL, &err);
        snprintf(text, sizeof text, "%" PRIu64 " nodes", n);
        say("walk", st, st == ZARR_OK ? text : err.message);
        open_children(g);
    }
    zarr_group_free(g);
    g = NULL;
    begin();
    st = zarr_group_open(&g, store, "", &never, &err);
    if (st == ZARR_OK)
        st = zarr_group_consolidated_check(g, count_difference, &n, NULL, &err);
    say("check", st, err.message);
    zarr_group_free(g);
}

int main(int argc, char **argv)
{
    zarr_context_options co = ZARR_CONTEXT_OPTIONS_INIT;
    zarr_limits limits = ZARR_LIMITS_INIT;
    zarr_context *ctx = NULL;
    zarr_store *store = NULL;
    zarr_array *a = NULL;
    zarr_error err = {0};
    zarr_status st;

    if (argc < 2)
        return 2;
    co.max_threads = 2;
    zarr_limits_untrusted(&limits);
    co.limits = argc > 2 && !strcmp(argv[2], "untrusted") ? &limits : NULL;
    if (zarr_context_create(&ctx, &co, &err) != ZARR_OK ||
        zarr_heap_create(&io.heap, ctx, MAX_READ_BYTES, &err) != ZARR_OK ||
        zarr_store_open(&store, ctx, argv[1], NULL, &err) != ZARR_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 2;
    }
    begin();
    st = zarr_array_open(&a, store, "a", NULL, &err);
    say("open", st, err.message);
    if (st == ZARR_OK) {
        read_all(a);
        inspect(a);
        look_strictly(store);
    }
    look_around(store);
    if (st == ZARR_OK && zarr_array_ndim(a) > 0 && zarr_array_shape(a)[0])
        write_one(a);
    zarr_array_free(a);
    zarr_heap_free(io.heap);
    zarr_store_free(store);
    zarr_context_free(ctx);
    say_peak();
    return 0;
}
