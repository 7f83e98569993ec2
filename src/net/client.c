/*
 * net/client.c - clients: their options, with own copies of texts that are wiped at the
 * end, and their counters.
 *
 * Thread class: shared.
 */
#include "net/curl_int.h"

#include <string.h>

static zarr_status client_copy_headers(struct zr_net *net, const char *const *lines,
                                       zarr_error *err)
{
    size_t n = 0;

    while (lines && lines[n])
        n++;
    net->secret_headers = zr_calloc(net->opts.alloc, n + 1, sizeof *net->secret_headers);
    if (!net->secret_headers)
        return zr_fail_memory(err, (n + 1) * sizeof *net->secret_headers);
    for (size_t i = 0; i < n; i++) {
        net->secret_headers[i] = zr_strdup(net->opts.alloc, lines[i]);
        if (!net->secret_headers[i])
            return zr_fail_memory(err, strlen(lines[i]) + 1);
        if (!zr_is_plain_line(lines[i]) || !strchr(lines[i], ':') || *lines[i] == ':')
            return zr_fail(err, ZARR_ERR_INVALID,
                           "header %zu is not \"Name: value\" in printable ASCII", i);
    }
    return ZARR_OK;
}

/* Makes own copies of all texts; zr_net_free() frees them, also after a failure. */
static zarr_status client_copy_options(struct zr_net *net, const struct zr_net_options *o,
                                       zarr_error *err)
{
    struct zr_net_options *own = &net->opts;
    const char **const texts[] = {&own->user_password, &own->proxy,     &own->no_proxy,
                                  &own->ca_file,       &own->ca_folder, &own->netrc_file};
    const char *from[ZR_COUNT(texts)];

    *own = *o;
    own->secret_headers = NULL;
    own->connect_ms = o->connect_ms ? o->connect_ms : ZR_NET_CONNECT_MS;
    own->stall_s = o->stall_s ? o->stall_s : ZR_NET_STALL_S;
    for (size_t i = 0; i < ZR_COUNT(texts); i++) {
        from[i] = *texts[i];
        *texts[i] = NULL;
    }
    for (size_t i = 0; i < ZR_COUNT(texts); i++) {
        if (!from[i])
            continue;
        *texts[i] = zr_strdup(own->alloc, from[i]);
        if (!*texts[i])
            return zr_fail_memory(err, strlen(from[i]) + 1);
    }
    return client_copy_headers(net, o->secret_headers, err);
}

zarr_status zr_net_open(struct zr_net **out, const struct zr_net_options *opts,
                        zarr_error *err)
{
    static zr_once once = ZR_ONCE_INIT;
    const struct zr_net_options none = {0}, *const o = opts ? opts : &none;
    struct zr_net *net = NULL;
    zarr_status st = ZARR_OK;

    *out = NULL;
    ZR_TRY(zr_net_curl_load(err));
    zr_call_once(&once, zr_net_engine_setup);
    net = zr_calloc(o->alloc, 1, sizeof *net);
    if (!net)
        ZR_FAIL_MEMORY(err, sizeof *net);
    ZR_TRY(client_copy_options(net, o, err));
    if (o->tls_unverified)
        zr_log(&o->log, ZARR_LOG_WARN,
               "certificates of https are not verified: anyone on the way can read and "
               "change the data");
    *out = net;
    net = NULL;
out:
    zr_net_free(net);
    return st;
}

void zr_net_free(struct zr_net *net)
{
    const zarr_allocator *alloc;

    if (!net)
        return;
    alloc = net->opts.alloc;
    for (size_t i = 0; net->secret_headers && net->secret_headers[i]; i++)
        zr_free_secret(alloc, net->secret_headers[i]);
    zr_free(alloc, net->secret_headers);
    zr_free_secret(alloc, (char *)net->opts.user_password);
    zr_free_secret(alloc, (char *)net->opts.proxy); /* may have a password */
    zr_free_secret(alloc, (char *)net->opts.no_proxy);
    zr_free_secret(alloc, (char *)net->opts.ca_file);
    zr_free_secret(alloc, (char *)net->opts.ca_folder);
    zr_free_secret(alloc, (char *)net->opts.netrc_file);
    zr_free(alloc, net);
}

void zr_net_stats_get(const struct zr_net *net, struct zr_net_stats *out)
{
    *out = (struct zr_net_stats){.requests = atomic_load(&net->requests),
                                 .retries = atomic_load(&net->retries),
                                 .in_bytes = atomic_load(&net->in_bytes),
                                 .out_bytes = atomic_load(&net->out_bytes)};
}
