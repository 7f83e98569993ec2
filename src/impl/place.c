/*
 * impl/place.c - chooses the implementation of each codec and the memory between two
 * codecs: the cheapest path through a graph. A node is a position in the chain with a
 * kind of memory. An edge is an implementation, which advances one position, or a copy,
 * which changes the memory. The search goes forward over positions, so it costs
 * positions x memories^2 x implementations: a few hundred steps at open.
 *
 * Costs, the weightiest first: the rank in the preference's list; that the device was
 * slower than the CPU when they were measured (costs.c), or that an implementation with
 * ZARR_CODEC_IF_FASTER was not measured; copies, which are
 * cheaper near the stored bytes because those are fewer; priorities. So a device
 * implementation is used if elements go to the device anyway, and then the compressed
 * bytes are copied. It is not used if elements would have to come back, unless the codec
 * preference names it. At equal cost the first registered implementation wins.
 *
 * A decoder that does not check its input (without ZARR_CODEC_SAFE) is used only if the
 * option trust permits it, or if a checksum around its codec has been checked by then.
 *
 * Decoding and encoding walk the same graph, from stored to decoded. They differ only in
 * trust and in the capability that an implementation needs.
 */
#include "impl/impl_int.h"

enum {
    PLACE_NODES = 8
}; /* host, target, and what the store reaches: a handful */
#define PLACE_COPY_COST INT64_C(100000)
#define PLACE_COPY_STEP INT64_C(1000) /* added for each position */
#define PLACE_PRIORITY_MAX                                                               \
    400 /* below PLACE_COPY_STEP, for 32 codecs in a chain below a copy */
#define PLACE_SLOWER_COST                                                                \
    INT64_C(10000000) /* measured: more than all copies, less than a wish */
#define PLACE_RANK_COST INT64_C(100000000)
#define PLACE_NEVER     INT64_MAX

struct place_node {
    int64_t cost;
    const struct zr_impl *impl; /* the edge from memory `from`: an implementation, */
    uint32_t from;
    bool copied; /* or a copy at the same position */
    bool looks;  /* the implementation's input is copied from the host before */
};
struct place_grid {
    struct place_node *node; /* [position * n + memory] */
    int32_t device[PLACE_NODES];
    uint32_t n;
};

static void place_add_device(struct place_grid *g, int32_t device)
{
    for (uint32_t i = 0; i < g->n; i++)
        if (g->device[i] == device)
            return;
    if (g->n < PLACE_NODES)
        g->device[g->n++] = device;
}

static bool place_kind(uint32_t kinds, int32_t device)
{
    return device > 0 && device < 32 && (kinds & ZARR_MEMORY_BIT(device));
}

const struct zr_measured *zr_place_find_measurement(const struct zr_place *p,
                                                    uint32_t link,
                                                    const struct zr_impl *impl)
{
    const struct zr_measured_key of = {.codec = zarr_codec_spec_name(p->links[link].spec),
                                       .impl = impl ? impl->vt.impl : NULL,
                                       .device_type = p->opts->target_device,
                                       .to_stored = p->opts->encode,
                                       .chunk_bytes = p->links[link].decoded->n_bytes};

    return p->costs ? zr_costs_find(p->costs, &of) : NULL;
}

bool zr_place_is_usable(const struct zr_place *p, uint32_t link,
                        const struct zr_impl *impl, int32_t in_device, int32_t out_device,
                        int64_t *cost)
{
    const zarr_codec_impl_vtable *v = &impl->vt;
    const char *codec = zarr_codec_spec_name(p->links[link].spec);
    const uint32_t able = p->opts->encode ? ZARR_CODEC_CAN_ENCODE : ZARR_CODEC_CAN_DECODE;

    if (!(v->caps & able) || !place_kind(v->in_kinds, in_device) ||
        !place_kind(v->out_kinds, out_device) ||
        !zr_impl_is_for(impl, p->links[link].spec->vt) ||
        zr_place_distrusts(p, link, impl))
        return false;
    if (p->excluded && p->excluded[link * zr_impl_count(p->impls) + impl->id])
        return false;
    *cost =
        -(int64_t)ZR_MAX(ZR_MIN(v->priority, PLACE_PRIORITY_MAX), -PLACE_PRIORITY_MAX);
    *cost += PLACE_PRIORITY_MAX;
    const bool if_faster = v->caps & ZARR_CODEC_IF_FASTER;

    if (if_faster || (in_device != ZARR_DEVICE_CPU && out_device != ZARR_DEVICE_CPU)) {
        const struct zr_measured *m = zr_place_find_measurement(p, link, impl);

        if (m ? m->host_ns < m->device_ns : if_faster)
            *cost += PLACE_SLOWER_COST;
    }
    *cost += PLACE_RANK_COST * zr_preference_rank(p->opts->preference, codec, v->impl);
    return true;
}

static int64_t copy_price(uint32_t position)
{
    return PLACE_COPY_COST + PLACE_COPY_STEP * position;
}

/* A copy from the cheapest memory at this position is always the cheapest copy. */
static void place_copies(struct place_grid *g, uint32_t position)
{
    struct place_node *row = g->node + (size_t)position * g->n;
    const int64_t price = copy_price(position);
    uint32_t best = 0;

    for (uint32_t i = 1; i < g->n; i++)
        if (row[i].cost < row[best].cost)
            best = i;
    for (uint32_t i = 0; i < g->n; i++)
        if (row[best].cost != PLACE_NEVER && row[i].cost > row[best].cost + price)
            row[i] = (struct place_node){
                .cost = row[best].cost + price, .from = best, .copied = true};
}

/* Cost of the input of an implementation in memory i; PLACE_NEVER: it gets none. An
 * implementation that looks at its input takes what comes from the host (memory 0). */
static int64_t input_cost(const struct place_grid *g, uint32_t link, uint32_t i,
                          bool looks)
{
    const struct place_node *row = g->node + (size_t)link * g->n;

    if (!looks || i == 0)
        return row[i].cost;
    return row[0].cost == PLACE_NEVER ? PLACE_NEVER : row[0].cost + copy_price(link);
}

/* Bytes that a store can give the host and the device alike go to the device. */
static bool place_is_better(const struct place_node *to, uint32_t j, uint32_t from,
                            int64_t cost)
{
    return cost < to[j].cost ||
           (cost == to[j].cost && !to[j].copied && to[j].from == 0 && from == j && j > 0);
}

static void place_impls(const struct zr_place *p, struct place_grid *g, uint32_t link)
{
    struct place_node *to = g->node + ((size_t)link + 1) * g->n;

    for (size_t k = 0; k < zr_impl_count(p->impls); k++) {
        const struct zr_impl *impl = zr_impl_at(p->impls, k);

        const bool looks = !p->opts->encode && (impl->vt.caps & ZARR_CODEC_LOOKS);

        for (uint32_t i = 0; i < g->n; i++) {
            const int64_t before = input_cost(g, link, i, looks);

            if (before == PLACE_NEVER)
                continue;
            for (uint32_t j = 0; j < g->n; j++) {
                int64_t cost = 0;

                if (zr_place_is_usable(p, link, impl, g->device[i], g->device[j],
                                       &cost) &&
                    place_is_better(to, j, i, before + cost))
                    to[j] = (struct place_node){.cost = before + cost,
                                                .impl = impl,
                                                .from = i,
                                                .looks = looks && i != 0};
            }
        }
    }
}

/* The error lists all implementations of the codec, whatever memory they need. */
static zarr_status place_fail(const struct zr_place *p, uint32_t link, zarr_error *err)
{
    const char *codec = zarr_codec_spec_name(p->links[link].spec);
    const char *absent = zr_impl_absence_text(p->impls, codec);
    char names[160] = "none is registered";
    bool distrusts = false;
    size_t used = 0;

    for (size_t k = 0; k < zr_impl_count(p->impls); k++) {
        const zarr_codec_impl_vtable *v = &zr_impl_at(p->impls, k)->vt;

        if (!zr_impl_is_for(zr_impl_at(p->impls, k), p->links[link].spec->vt))
            continue;
        for (const char *c = used ? ", " : ""; *c && used + 1 < sizeof names; c++)
            names[used++] = *c;
        for (const char *c = v->impl; *c && used + 1 < sizeof names; c++)
            names[used++] = *c;
        names[used] = '\0';
        distrusts |= zr_place_distrusts(p, link, zr_impl_at(p->impls, k));
    }
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "codec \"%s\": no implementation %s here (%s)%s%s%s", codec,
                   p->opts->encode ? "encodes" : "decodes", names,
                   !used && absent ? ": " : "", !used && absent ? absent : "",
                   distrusts ? "; the option trust excludes implementations that do not "
                               "check their input"
                             : "");
}

static zarr_status place_walk(const struct zr_place *p, struct place_grid *g,
                              zarr_error *err)
{
    for (uint32_t link = 0; link < p->n_links; link++) {
        bool reached = false;

        place_copies(g, link);
        place_impls(p, g, link);
        for (uint32_t i = 0; i < g->n; i++)
            reached |= g->node[((size_t)link + 1) * g->n + i].cost != PLACE_NEVER;
        if (!reached)
            return place_fail(p, link, err);
    }
    if (p->n_links)
        place_copies(g, p->n_links);
    return ZARR_OK;
}

/* Follows the path from the end back to the stored bytes, then reverses it. */
static uint32_t place_trace(const struct zr_place *p, const struct place_grid *g,
                            uint32_t at, struct zr_step *steps)
{
    uint32_t position = p->n_links, n = 0;

    for (;;) {
        const struct place_node *node = &g->node[(size_t)position * g->n + at];

        if (!node->copied && position == 0)
            break;
        if (!node->copied)
            position--;
        steps[n++] = (struct zr_step){.impl = node->copied ? NULL : node->impl,
                                      .link = position,
                                      .in_device = g->device[node->from],
                                      .out_device = g->device[at]};
        at = node->from;
        if (node->looks) {
            steps[n++] = (struct zr_step){
                .link = position, .in_device = g->device[0], .out_device = g->device[at]};
            at = 0;
        }
    }
    for (uint32_t i = 0; i < n / 2; i++) {
        const struct zr_step last = steps[n - 1 - i];

        steps[n - 1 - i] = steps[i];
        steps[i] = last;
    }
    return n;
}

zarr_status zr_place_path(const struct zr_place *p, struct zr_step *steps,
                          uint32_t *n_steps, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct place_grid g = {0};
    uint32_t target = 0;

    place_add_device(&g, ZARR_DEVICE_CPU);
    place_add_device(&g, p->opts->target_device);
    target = g.n - 1;
    for (uint32_t i = 0; i < p->opts->n_store_devices; i++)
        place_add_device(&g, p->opts->store_devices[i]);
    g.node = zr_calloc(p->alloc, ((size_t)p->n_links + 1) * g.n, sizeof *g.node);
    if (!g.node)
        return zr_fail_memory(err, ((uint64_t)p->n_links + 1) * g.n * sizeof *g.node);
    for (size_t i = 0; i < ((size_t)p->n_links + 1) * g.n; i++)
        g.node[i].cost = PLACE_NEVER;
    g.node[0].cost = 0; /* the host */
    for (uint32_t i = 0; i < p->opts->n_store_devices; i++)
        for (uint32_t k = 0; k < g.n; k++)
            if (g.device[k] == p->opts->store_devices[i])
                g.node[k].cost = 0;
    ZR_TRY(place_walk(p, &g, err));
    *n_steps = place_trace(p, &g, target, steps);
out:
    zr_free(p->alloc, g.node);
    return st;
}
