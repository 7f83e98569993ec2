/*
 * codecs/objects/values.c - elements of "|O" that are not text. A value other than text
 * becomes its JSON text with a blank before it: 1 becomes " 1", null " null". Text stays
 * as it is, unless it has that form itself: then it becomes a blank and a JSON string. So
 * every value of JSON has one text, every text one value, and encoding gives back what
 * was decoded.
 * Thread class: plain functions; a zr_values is solo.
 */
#include "codecs/objects/values.h"

#include <math.h>
#include <string.h>

/* A value with more than this many lists and objects in each other, or with more values
 * in it, has no text. A tree of so many values takes some 250 MiB. */
#define VALUE_TOKENS (UINT64_C(4) << 20)

zarr_status zr_values_open(void *self, void **state, zarr_error *err)
{
    ZR_UNUSED(self);
    *state = zr_calloc(NULL, 1, sizeof(struct zr_values));
    return *state ? ZARR_OK : zr_fail_memory(err, sizeof(struct zr_values));
}

void zr_values_close(void *state)
{
    struct zr_values *t = state;

    if (t && t->open) {
        zr_json_doc_deinit(&t->doc);
        zr_json_doc_deinit(&t->scratch);
    }
    zr_free(NULL, t);
}

void zr_values_begin(struct zr_values *t, const zarr_allocator *alloc)
{
    if (t->open) {
        zr_json_doc_reset(&t->doc);
    } else {
        zr_json_doc_init(&t->doc, alloc);
        zr_json_doc_init(&t->scratch, alloc);
    }
    t->open = true;
}

zarr_status zr_value_parse(struct zr_json_doc *doc, const zarr_vlen *item, bool *is_value,
                           zarr_error *err)
{
    const char *s = item->data;
    zarr_error why = {0};
    zarr_limits limits;
    zarr_status st;

    *is_value = false;
    /* what JSON begins with, NaN and Infinity included */
    if (item->bytes < 2 || s[0] != ' ' || !s[1] || !strchr("\"{[-0123456789tfnNI", s[1]))
        return ZARR_OK;
    limits = (zarr_limits){.json_depth = ZR_VALUE_DEPTH,
                           .json_tokens = VALUE_TOKENS,
                           .string_bytes = item->bytes};
    zr_json_doc_reset(doc);
    st = zr_json_parse(doc, s + 1, (size_t)item->bytes - 1, &limits, &why);
    *is_value = st == ZARR_OK;
    return st == ZARR_ERR_CORRUPT ? ZARR_OK : zr_pass(err, st, &why);
}

/* Moves the text into memory that lasts until the next chunk. */
static zarr_status value_keep(struct zr_values *t, const struct zr_str *text,
                              zarr_vlen *out, zarr_error *err)
{
    ZR_CHECK(zr_str_status(text, err));
    *out = (zarr_vlen){zr_arena_strndup(&t->doc.arena, zr_str_text(text), text->bytes),
                       text->bytes};
    if (!out->data)
        return zr_fail_memory(err, text->bytes);
    return ZARR_OK;
}

zarr_status zr_value_text(struct zr_values *t, const struct zr_json *v, zarr_vlen *out,
                          zarr_error *err)
{
    struct zr_str text;
    zarr_status st;

    zr_str_init(&text, t->doc.arena.alloc);
    zr_str_putc(&text, ' ');
    zr_json_write_tokens(v, &text);
    st = value_keep(t, &text, out, err);
    zr_str_deinit(&text);
    return st;
}

zarr_status zr_value_escape(struct zr_values *t, zarr_vlen *item, zarr_error *err)
{
    zarr_error why = {0};
    struct zr_str text;
    bool is_value = false;
    zarr_status st = zr_value_parse(&t->scratch, item, &is_value, &why);

    /* text beyond the limits is replaced, too, because encoding would refuse it */
    if (st != ZARR_ERR_LIMIT && (st != ZARR_OK || !is_value))
        return zr_pass(err, st, &why);
    zr_str_init(&text, t->doc.arena.alloc);
    zr_str_putc(&text, ' ');
    zr_json_write_string(&text, item->data, (size_t)item->bytes);
    st = value_keep(t, &text, item, err);
    zr_str_deinit(&text);
    return st;
}

/* ---- numbers inside values ------------------------------------------------------- */

bool zr_value_number(const struct zr_json *v, uint32_t *kind, struct zr_numpy_value *out)
{
    int64_t minus = 0;

    *out = (struct zr_numpy_value){0};
    *kind = ZARR_KIND_FLOAT;
    if (strpbrk(v->u.text.ptr, ".eENI"))
        return zr_json_f64(v, &out->d);
    *kind = ZARR_KIND_UINT;
    if (zr_json_u64(v, &out->u))
        return true;
    *kind = ZARR_KIND_INT;
    if (!zr_json_i64(v, &minus))
        return false;
    out->u = (uint64_t)minus;
    return true;
}

struct zr_json *zr_value_new_number(struct zr_json_doc *doc, uint32_t kind,
                                    struct zr_numpy_value v)
{
    char text[48];

    if (kind == ZARR_KIND_BOOL)
        return zr_json_new_bool(doc, v.u != 0);
    if (kind == ZARR_KIND_UINT)
        return zr_json_new_u64(doc, v.u);
    if (kind == ZARR_KIND_INT)
        return zr_json_new_i64(doc, (int64_t)v.u);
    (void)zr_format_f64(text, sizeof text, v.d);
    return zr_json_new_number(doc, text);
}

const struct zr_json *zr_value_next(struct zr_value_walk *w, const struct zr_json *v)
{
    if (v->type >= ZR_JSON_ARRAY && v->u.children.n > 0) {
        w->around[w->depth++] = v;
        return v->u.children.first;
    }
    while (w->depth > 0 && !v->next)
        v = w->around[--w->depth];
    return w->depth > 0 ? v->next : NULL;
}

static const char *number_unfit(const struct zr_value_rule *rule,
                                const struct zr_json *number)
{
    struct zr_numpy_value n;
    uint32_t kind = 0;

    if (!zr_value_number(number, &kind, &n) && !rule->any_integer)
        return "has an integer of more than 64 bits";
    if (kind != ZARR_KIND_FLOAT)
        return NULL;
    if (!rule->any_float && !isfinite(n.d))
        return "is not finite, allow_nan is false";
    if (rule->single && isfinite(n.d) && !isfinite((float)n.d))
        return "is too large for 32 bits, use_single_float is true";
    return NULL;
}

const char *zr_value_unfit(const struct zr_value_rule *rule, const struct zr_json *v)
{
    struct zr_value_walk walk = {.depth = 0};
    const char *why = NULL;

    for (; v && !why; v = zr_value_next(&walk, v))
        if (v->type == ZR_JSON_NUMBER)
            why = number_unfit(rule, v);
    return why;
}
