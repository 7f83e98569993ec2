/*
 * tests/kernels/cuda.c - the kernels on the first CUDA device. Memory around each buffer
 * is checked: no kernel writes there. KERNELS_EXACT=1 makes each buffer an allocation of
 * its size, up to the end of its last word, which kernels may read. compute-sanitizer
 * then sees each wild access.
 */
#include <stdio.h>

#include "driver.h"
#include "runner.h"

enum {
    GUARD = 256, /* bytes on each side of a buffer; keeps its alignment */
    BLOCK = 128  /* work items, if a kernel asks for no group */
};
struct cuda {
    struct driver driver;
    cu_module module;
    size_t guard;
};

static void must(const struct cuda *c, cu_result rc, const char *what)
{
    if (rc)
        fail_msg("CUDA: %s: %s (%d)", what, driver_error(&c->driver, rc), rc);
}

struct cuda *cuda_open(void)
{
    struct cuda *c = calloc(1, sizeof *c);
    const char *why = c ? driver_open(&c->driver) : "no memory";

    if (why) {
        printf("no CUDA: %s\n", why);
        free(c);
        return NULL;
    }
    if (driver_kernels(&c->driver, &c->module))
        exit(1); /* a device is there, and the kernels do not compile for it */
    c->guard = getenv("KERNELS_EXACT") ? 0 : GUARD;
    return c;
}

void cuda_close(struct cuda *c)
{
    (void)c->driver.module_unload(c->module);
    driver_close(&c->driver);
    free(c);
}

static size_t with_guards(const struct cuda *c, size_t n)
{
    return (n + 3) / 4 * 4 + 2 * c->guard;
}

/* Returns the allocation; the buffer begins after a guard. */
static cu_place upload(const struct cuda *c, const struct argument *a)
{
    const size_t n = (size_t)a->n, all = with_guards(c, n);
    uint8_t *bytes = block(all);
    cu_place at;

    memset(bytes, 0xA5, all);
    memcpy(bytes + c->guard, a->bytes, n);
    must(c, c->driver.alloc(&at, all ? all : 1), "alloc");
    if (all)
        must(c, c->driver.up(at, bytes, all), "copy up");
    free(bytes);
    return at;
}

static void download(const struct cuda *c, cu_place at, const struct argument *a)
{
    const size_t n = (size_t)a->n, all = with_guards(c, n);
    uint8_t *bytes = block(all);

    if (all)
        must(c, c->driver.down(bytes, at, all), "copy down");
    must(c, c->driver.free(at), "free");
    for (size_t i = 0; i < c->guard; i++) {
        if (bytes[i] != 0xA5)
            fail_msg("CUDA: byte %zu before a buffer of %zu was written", c->guard - i,
                     n);
        if (bytes[c->guard + n + i] != 0xA5)
            fail_msg("CUDA: byte %zu behind a buffer of %zu was written", i, n);
    }
    memcpy(a->bytes, bytes + c->guard, n);
    free(bytes);
}

void cuda_launch(struct cuda *c, const char *kernel, uint64_t items, uint32_t group,
                 const struct argument arguments[ARGUMENTS_MOST])
{
    const unsigned each = group ? group : BLOCK;
    const uint64_t blocks = (items + each - 1) / each;
    cu_place owned[ARGUMENTS_MOST] = {0};
    union {
        uint64_t wide; /* an address or a number */
        uint32_t narrow;
    } values[ARGUMENTS_MOST];
    void *parameters[ARGUMENTS_MOST]; /* the driver reads as many as the kernel has */
    cu_function f;

    must(c, c->driver.function_get(&f, c->module, kernel), kernel);
    assert_true(blocks <= INT32_MAX);
    for (int i = 0; i < ARGUMENTS_MOST; i++) {
        const struct argument *a = &arguments[i];
        const int same = a->bytes ? first_argument(arguments, i) : i;

        if (a->bytes && same == i) {
            owned[i] = upload(c, a);
            values[i].wide = owned[i] + c->guard;
        } else if (a->bytes) {
            values[i].wide = values[same].wide;
        } else if (a->is_u32) {
            values[i].narrow = (uint32_t)a->n;
        } else {
            values[i].wide = a->n;
        }
        parameters[i] = &values[i];
    }
    if (blocks)
        must(c,
             c->driver.launch(f, (unsigned)blocks, 1, 1, each, 1, 1, 0, NULL, parameters,
                              NULL),
             kernel);
    must(c, c->driver.wait_all(), kernel);
    for (int i = 0; i < ARGUMENTS_MOST; i++)
        if (owned[i])
            download(c, owned[i], &arguments[i]);
}
