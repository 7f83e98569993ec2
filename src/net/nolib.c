/*
 * net/nolib.c - the room in a build without libcurl: no client can be made, so the other
 * functions are never called.
 *
 * Thread class: plain functions.
 */
#include "net/net_int.h"

zarr_status zr_net_open(struct zr_net **out, const struct zr_net_options *opts,
                        zarr_error *err)
{
    ZR_UNUSED(opts);
    *out = NULL;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "http and https are not supported: this build lacks libcurl");
}

void zr_net_free(struct zr_net *net)
{
    ZR_UNUSED(net);
}

void zr_net_submit(struct zr_net *net, struct zr_net_request *r)
{
    zarr_error err = {0};
    const zarr_status st = zr_internal(&err);

    ZR_UNUSED(net);
    r->done(r, st, &err);
}

zarr_status zr_net_run(struct zr_net *net, struct zr_net_request *r, zarr_error *err)
{
    ZR_UNUSED(net, r);
    return zr_internal(err);
}

void zr_net_request_deinit(struct zr_net_request *r)
{
    zr_net_answer_deinit(&r->answer);
}

bool zr_net_is_reactor(void)
{
    return false;
}

void zr_net_cancel(struct zr_net *net, const void *tag)
{
    ZR_UNUSED(net, tag);
}

void zr_net_scope_begin(struct zr_net_scope *s, const struct zr_net *net, const void *tag)
{
    *s = (struct zr_net_scope){.net = net, .tag = tag};
}

void zr_net_scope_move(struct zr_net_scope *to, struct zr_net_scope *from)
{
    *to = *from;
}

void zr_net_scope_end(struct zr_net_scope *s)
{
    ZR_UNUSED(s);
}

bool zr_net_scope_is_cancelled(const struct zr_net *net, const void *tag)
{
    ZR_UNUSED(net, tag);
    return false;
}

uint32_t zr_net_count_tries(const struct zr_net_request *r)
{
    ZR_UNUSED(r);
    return 1;
}

zarr_status zr_net_fail_status(zarr_error *err, const struct zr_net_request *r)
{
    ZR_UNUSED(r);
    return zr_internal(err);
}

void zr_net_buffer_sink(struct zr_net_sink *out, struct zr_net_buffer *buffer)
{
    *out = (struct zr_net_sink){.user = buffer};
}

void zr_net_stats_get(const struct zr_net *net, struct zr_net_stats *out)
{
    ZR_UNUSED(net);
    *out = (struct zr_net_stats){0};
}

void zr_net_engine_stats_get(struct zr_net_engine_stats *out)
{
    *out = (struct zr_net_engine_stats){0};
}
