/*
 * ports/cuda/test_cuda_tables.c - the tables of the CUDA plug-in, called as the library
 * may call them: what it does not do by chance. The program runs over the fake driver and
 * a fake nvCOMP, and loads the plug-in itself.
 */
#include "application.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

enum {
    BYTES = 1000,
    BLOCK = 8192
};

/* ---- the plug-in's host -------------------- */

static const zarr_memory_vtable *memory;
static const zarr_codec_impl_vtable *zstd;

static zarr_status failure(zarr_error *e, zarr_status st, const char *fmt, ...)
{
    (void)e;
    (void)fmt;
    return st;
}

static const char *option_text(zarr_context *c, const char *name)
{
    (void)c;
    return strcmp(name, "nvcomp") == 0 ? FAKE_NVCOMP : NULL;
}

static zarr_status take_memory(zarr_context *c, const zarr_memory_vtable *vt, void *self,
                               zarr_error *e)
{
    (void)c;
    (void)self;
    (void)e;
    if (strcmp(vt->name, "cuda") == 0)
        memory = vt;
    return ZARR_OK;
}

static zarr_status take_codec(zarr_context *c, const zarr_codec_impl_vtable *vt,
                              zarr_error *e)
{
    (void)c;
    (void)e;
    if (strcmp(vt->codec, "zstd") == 0)
        zstd = vt;
    return ZARR_OK;
}

static const zarr_host host = {.struct_size = sizeof host,
                               .abi = ZARR_PLUGIN_ABI,
                               .fail = failure,
                               .register_memory = take_memory,
                               .register_codec_impl = take_codec,
                               .option_text = option_text};

static zarr_mem block_on(int32_t device)
{
    zarr_mem mem = {0};

    OK(memory->alloc(NULL, device, BLOCK, &mem, NULL));
    return mem;
}

static zarr_mem part_of(const zarr_mem *mem, uint64_t at, uint64_t bytes)
{
    zarr_mem part = *mem;

    part.offset += at;
    part.bytes = bytes;
    return part;
}

/* ---- memory -------------------- */

/* The kernels of one device do not reach the memory of another. */
static void boxes_of_two_devices(void **state)
{
    zarr_mem a = block_on(0), b = block_on(1);
    zarr_box box = {.struct_size = sizeof box, .ndim = 1, .item_bytes = 4, .shape = {64}};

    (void)state;
    box.dst = (zarr_box_side){.mem = a, .stride = {4}};
    box.src = (zarr_box_side){.mem = b, .stride = {8}};
    assert_int_equal(memory->copy_box(NULL, &box, NULL, NULL), ZARR_ERR_UNSUPPORTED);
    assert_int_equal(memory->copy_boxes(NULL, &box, 1, NULL, NULL), ZARR_ERR_UNSUPPORTED);
    OK(memory->copy(NULL, &a, &b, BLOCK, NULL, NULL));
    memory->free(NULL, &a);
    memory->free(NULL, &b);
}

/* ---- nvCOMP -------------------- */

/* A call that fails leaves no work: the library gives the scratch memory to others. One
 * input has been moved there when the other output turns out to begin at a wrong place.
 */
static void failed_batch_leaves_no_work(void **state)
{
    static uint8_t marks[BLOCK], got[BLOCK];
    const zarr_chunk_spec decoded = {
        .struct_size = sizeof decoded, .exact = 1, .n_bytes = BYTES};
    const zarr_codec_binding to = {.struct_size = sizeof to,
                                   .decoded = &decoded,
                                   .encoded = &decoded,
                                   .decoded_type = ZARR_DEVICE_CUDA,
                                   .encoded_type = ZARR_DEVICE_CUDA};
    const zarr_mem on_host = {.handle = marks, .bytes = BLOCK},
                   back = {.handle = got, .bytes = BLOCK};
    zarr_mem src = block_on(0), dst = block_on(0), scratch = block_on(0);
    zarr_codec_job jobs[2] = {
        {.src = part_of(&src, 1, 100), .dst = part_of(&dst, 0, BYTES)},
        {.src = part_of(&src, 256, 100), .dst = part_of(&dst, 2049, BYTES)}};
    zarr_codec_exec exec = {.struct_size = sizeof exec, .scratch = scratch};
    void *self = NULL;

    (void)state;
    OK(zstd->bind(&self, NULL, &to, NULL));
    assert_true(zstd->scratch(self, 2, BYTES) <= BLOCK);
    OK(memory->stream_open(NULL, 0, &exec.stream, NULL));
    assert_int_equal(zstd->decode(self, jobs, 2, &exec, NULL), ZARR_ERR_UNSUPPORTED);
    assert_null(exec.pending);
    memset(marks, 0x11, sizeof marks);
    OK(memory->copy(NULL, &scratch, &on_host, BLOCK, NULL, NULL));
    OK(memory->sync(NULL, exec.stream, NULL));
    OK(memory->copy(NULL, &back, &scratch, BLOCK, NULL, NULL));
    assert_memory_equal(got, marks, BLOCK);
    memory->stream_close(NULL, exec.stream);
    zstd->close(self);
    memory->free(NULL, &src);
    memory->free(NULL, &dst);
    memory->free(NULL, &scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(boxes_of_two_devices),
                                       cmocka_unit_test(failed_batch_leaves_no_work)};
    void *file = NULL, *symbol, *self = NULL;
    zarr_plugin_fn door = NULL;
    int rc;

    setenv("FAKECUDA_SEED", "0", 1); /* work waits as long as it may */
    if (!is_fake())
        return 77;
    file = dlopen(PORT_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    symbol = file ? dlsym(file, "zarr_plugin_v1") : NULL;
    memcpy(&door, &symbol, sizeof door);
    if (!door || door()->load(&host, NULL, &self, NULL) != ZARR_OK)
        return 1;
    rc = cmocka_run_group_tests(tests, NULL, NULL);
    door()->unload(self);
    return rc;
}
