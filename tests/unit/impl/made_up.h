/*
 * unit/impl/made_up.h - made-up implementations of codecs, which count what is bound and
 * opened, and the chains that the tests of programs use.
 */
#ifndef ZR_TESTS_MADE_UP_H
#define ZR_TESTS_MADE_UP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/impl/impl_test.h"

#define EXT ZARR_MEMORY_BIT(ZARR_DEVICE_EXT)
#define CPU ZARR_MEMORY_BIT(ZARR_DEVICE_CPU)

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#    define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#    define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#else /* the structure, and the bytes to swap */
#    define LITTLE "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"big\"}}"
#    define BIG    "{\"name\":\"bytes\",\"configuration\":{\"endian\":\"little\"}}"
#endif
#define TURN  "{\"name\":\"transpose\",\"configuration\":{\"order\":[1,0]}}"
#define DELTA "{\"name\":\"numcodecs.delta\",\"configuration\":{\"dtype\":\"<i4\"}}"

static int n_bound, n_states, refuse_to_bind;
static zarr_codec_binding last_bound[2]; /* to decode, to encode */

static inline zarr_status made_up_bind(void **self, const zarr_codec_spec *spec,
                                       const zarr_codec_binding *to, zarr_error *err)
{
    ZR_UNUSED(spec);
    if (refuse_to_bind)
        return zr_fail(err, ZARR_ERR_UNSUPPORTED, "made-up: not this one");
    last_bound[to->encode] = *to;
    n_bound++;
    *self = &n_bound;
    return ZARR_OK;
}

static inline void made_up_close(void *self)
{
    assert_ptr_equal(self, &n_bound);
    n_bound--;
}

static inline int made_up_accepts(void *self, const zarr_codec_job *job)
{
    ZR_UNUSED(self);
    return job->src.bytes < 100;
}

static inline zarr_status made_up_open(void *self, void **state, zarr_error *err)
{
    ZR_UNUSED(err);
    assert_ptr_equal(self, &n_bound);
    n_states++;
    *state = &n_states;
    return ZARR_OK;
}

static inline void made_up_close_state(void *state)
{
    assert_ptr_equal(state, &n_states);
    n_states--;
}

static uint64_t made_up_used;

/* Produces made_up_used bytes, or fails for chunks that begin with 'x'. */
static inline zarr_status made_up_code(void *self, zarr_codec_job *jobs, uint64_t n,
                                       zarr_codec_exec *exec, zarr_error *err)
{
    zarr_status st = ZARR_OK;

    ZR_UNUSED(self);
    assert_ptr_equal(exec->thread_state, &n_states);
    for (uint64_t i = 0; i < n; i++) {
        jobs[i].dst_used = made_up_used;
        if (*(const char *)jobs[i].src.handle == 'x')
            st = jobs[i].status = zr_fail(err, ZARR_ERR_CORRUPT, "made-up: x");
    }
    return st;
}

static const zarr_codec_impl_vtable made_up = {
    .struct_size = sizeof(zarr_codec_impl_vtable),
    .caps = ZARR_CODEC_SAFE | ZARR_CODEC_CAN_DECODE | ZARR_CODEC_CAN_ENCODE |
            ZARR_CODEC_BATCH,
    .codec = "zstd",
    .impl = "ext.test",
    .in_kinds = EXT,
    .out_kinds = EXT,
    .bind = made_up_bind,
    .accepts = made_up_accepts,
    .thread_open = made_up_open,
    .thread_close = made_up_close_state,
    .encode = made_up_code,
    .decode = made_up_code,
    .close = made_up_close,
};

struct made_up_row {
    const char *codec, *impl;
    uint32_t in, out;
    int32_t priority;
    uint32_t caps; /* 0: encodes and decodes */
};

static inline void open_with(struct impl_env *env, const struct made_up_row *rows)
{
    assert_int_equal(impl_env_open(env, NULL, NULL), ZARR_OK);
    for (; rows->codec; rows++) {
        zarr_codec_impl_vtable v = made_up;

        v.codec = rows->codec;
        v.impl = rows->impl;
        v.in_kinds = rows->in;
        v.out_kinds = rows->out;
        v.priority = rows->priority;
        if (rows->caps)
            v.caps = rows->caps;
        assert_int_equal(zr_impl_register(&env->impls, &v, "test", NULL), ZARR_OK);
    }
}

#endif
