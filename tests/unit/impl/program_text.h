/*
 * unit/impl/program_text.h - a program as one line, in the order of execution:
 * "zstd@cpu.libzstd -> copy host->ext -> swap 4 -> transpose(1,0)". Implementations after
 * a slash are the fallbacks, in order.
 */
#ifndef ZR_PROGRAM_TEXT_H
#define ZR_PROGRAM_TEXT_H

#include "impl/impl_int.h"

static inline void program_print_stage(struct zr_str *out, const struct zr_stage *s,
                                       bool encode)
{
    if (s->kind == ZR_STAGE_COPY) {
        zr_str_puts(out, "copy ");
        zr_device_print(out, encode ? s->out_device : s->in_device);
        zr_str_puts(out, "->");
        zr_device_print(out, encode ? s->in_device : s->out_device);
        return;
    }
    zr_str_printf(out, "%s@%s", zarr_codec_spec_name(&s->spec), s->impl->vt.impl);
    for (const struct zr_stage *f = s->fallback; f; f = f->fallback)
        zr_str_printf(out, "/%s", f->impl->vt.impl);
}

/* Prints what the copy between chunk and tensor also does. True if it printed anything.
 */
static inline bool program_print_facts(struct zr_str *out, const struct zr_program *p,
                                       const char *before)
{
    bool permuted = false;

    for (int32_t i = 0; i < p->ndim; i++)
        permuted |= p->order[i] != i;
    if (p->swap_bytes > 1)
        zr_str_printf(out, "%sswap %" PRIu32, before, p->swap_bytes);
    if (permuted) {
        zr_str_printf(out, "%stranspose(", p->swap_bytes > 1 ? " -> " : before);
        for (int32_t i = 0; i < p->ndim; i++)
            zr_str_printf(out, "%s%d", i ? "," : "", p->order[i]);
        zr_str_putc(out, ')');
    }
    return permuted || p->swap_bytes > 1;
}

static inline void program_print(const struct zr_program *p, struct zr_str *out)
{
    const char *join = "";

    if (p->encode && program_print_facts(out, p, ""))
        join = " -> ";
    for (uint32_t i = 0; i < p->n; i++) {
        zr_str_puts(out, join);
        program_print_stage(out, &p->stage[p->encode ? p->n - 1 - i : i], p->encode);
        join = " -> ";
    }
    if (!p->encode && program_print_facts(out, p, join))
        join = " -> ";
    if (!join[0])
        zr_str_puts(out, "raw");
}

#endif
