/*
 * pipe/chunk/strided_decode.c - decodes whole chunks directly into a view that has
 * strides, by decoders that can write there (zfp, a plug-in's). This saves a block and a
 * copy. A chunk that the decoder refuses takes the general way. Thread class: on the
 * worker context.
 */
#include "pipe/chunk/chunk_int.h"

/* Finds the place and the strides of a whole chunk in the view. stride has ZARR_MAX_RANK
 * entries. */
static bool places(const struct zr_io *io, const struct zr_program *p,
                   const struct zr_target *t, zarr_codec_strided *to, int64_t *stride)
{
    const struct zr_view *v = zr_target_view(io, t);
    int64_t offset = 0;

    if (io->no_direct || t->many || io->field.on || io->layout->variable ||
        t->kind != ZR_PROJ_DIMS || !t->arithmetic ||
        v->base.device_type != p->decoded_device ||
        (p->swap_bytes > 1) != (v->swap_bytes > 1))
        return false;
    for (int32_t s = 0; s < p->ndim; s++) {
        const struct zr_piece *piece = &t->dim[p->order[s]];
        const int64_t vs = piece->result_dim < 0 ? 0 : v->stride[piece->result_dim];

        if (piece->n != p->stored_shape[s] || piece->c0 != 0 ||
            (piece->n > 1 && (piece->c_step != 1 || vs == 0)))
            return false;
        stride[s] = piece->n > 1 ? piece->r_step * vs : (int64_t)io->layout->item_bytes;
        offset += (int64_t)piece->r0 * vs;
    }
    *to = (zarr_codec_strided){.struct_size = sizeof *to,
                               .ndim = p->ndim,
                               .item_bytes = io->layout->item_bytes,
                               .first = v->base,
                               .shape = p->stored_shape,
                               .stride = stride};
    to->first.offset += (uint64_t)offset;
    to->first.bytes = to->item_bytes;
    return true;
}

/* Runs the last stage from c->cur with strides. */
static zarr_status last_stage(const struct zr_work *w, const struct zr_coding *c,
                              const zarr_codec_strided *to, bool *done, zarr_error *err)
{
    const struct zr_stage *s = &c->p->stage[c->p->n - 1];
    const uint64_t need = zr_stage_scratch(s, 1);
    zarr_codec_job job = {.src = c->cur};
    zarr_memory scratch = {0};
    zarr_status st = ZARR_OK;

    if (!zr_stage_accepts(s, &job))
        return ZARR_OK;
    if (need > 0)
        ZR_TRY(
            zr_worker_scratch(w, ZR_SCRATCH_CODEC, s->out_device, need, &scratch, err));
    st = zr_stage_decode_strided(s, &job, to, &w->worker->states, scratch, err);
    *done = st == ZARR_OK;
    if (*done) {
        w->worker->stats.bytes_decoded += job.dst_used;
        w->worker->stats.chunks_distrusted += c->p->distrusts;
    }
    if (st == ZARR_ERR_UNSUPPORTED || zr_stage_declines(s, st))
        st = ZARR_OK;
out:
    return st;
}

static bool strided_applies(const struct zr_work *w, struct zr_direct *d)
{
    ZR_UNUSED(w);
    return d->coding->p->decodes_strided;
}

static zarr_status strided_read(const struct zr_work *w, struct zr_direct *d, bool *done,
                                zarr_error *err)
{
    struct zr_coding *c = d->coding;
    const struct zr_program *p = c->p;
    int64_t stride[ZARR_MAX_RANK];
    zarr_codec_strided to;
    zarr_status st = ZARR_OK;

    if (!places(w->io, p, &d->item->target, &to, stride))
        return ZARR_OK;
    ZR_TRY(zr_stages_run(w, c, p->n - 1, NULL, err));
    if (c->done == 0)
        ZR_TRY(zr_bring_encoded(w, &p->stage[0], &c->cur, err));
    ZR_TRY(last_stage(w, c, &to, done, err));
    d->placed = *done;
out:
    return st;
}

const struct zr_direct_route zr_route_strided = {true, strided_applies, strided_read};
