/*
 * codecs/objects/objects.c - the shared part of json2 and msgpack2: nested lists, checks
 * of elements, and output whose size is counted before it is written. values.c says what
 * elements other than text are in arrays of text.
 * Thread class: plain functions.
 */
#include "codecs/objects/objects_int.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

zarr_status zr_objects_bind(void **out, const struct zr_objects_form *form,
                            const zarr_codec_spec *spec, const zarr_codec_binding *to,
                            zarr_error *err)
{
    const zarr_allocator *alloc = zarr_codec_spec_allocator(spec);
    struct zr_objects *self = zr_calloc(alloc, 1, sizeof *self);
    zarr_status st = ZARR_OK;
    int bin = 1, single = 0;

    if (!self)
        return zr_fail_memory(err, sizeof *self);
    self->alloc = alloc;
    self->form = form;
    self->codec = zarr_codec_spec_name(spec);
    self->each = sizeof(zarr_vlen);
    if (zr_object_number(to->decoded->dtype, &self->type)) {
        self->each = self->type.bytes;
        self->type.big = self->each > 1 && !ZR_HOST_IS_LITTLE;
    }
    self->n = to->decoded->n_bytes / self->each;
    self->ndim = to->decoded->ndim;
    memcpy(self->shape, to->decoded->shape, sizeof self->shape);
    self->most_values = zr_spec_most_bytes(spec) / sizeof(struct zr_json);
    (void)zarr_codec_spec_bool(spec, "use_bin_type", &bin);
    (void)zarr_codec_spec_bool(spec, "use_single_float", &single);
    self->short_text = bin != 0;
    self->single = single != 0;
    if (zr_streq(self->codec, "json2"))
        ZR_TRY(zr_spec_json2(spec, &self->json, err));
    *out = self; /* moved */
    self = NULL;
out:
    zr_free(alloc, self);
    return st;
}

void zr_objects_close(void *self)
{
    if (self)
        zr_free(((struct zr_objects *)self)->alloc, self);
}

zarr_status zr_objects_fail(const struct zr_objects *self, const char *what, uint64_t i,
                            zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CORRUPT, "%s: element %" PRIu64 " %s", self->codec, i,
                   what);
}

zarr_status zr_objects_no_json(const struct zr_objects *self, const char *what,
                               uint64_t i, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "%s: element %" PRIu64 " is or has %s, which JSON lacks", self->codec,
                   i, what);
}

zarr_status zr_objects_wrong_list(const struct zr_objects *self, uint64_t want,
                                  zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "%s: the chunk is not a list of %" PRIu64
                   " elements or lists with type and shape after them",
                   self->codec, want);
}

zarr_status zr_objects_wrong_shape(const struct zr_objects *self, zarr_error *err)
{
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "%s: the shape after the elements is not that of their lists",
                   self->codec);
}

/* Whether it is NumPy's name of objects or of text. Every element is text then. */
static bool objects_is_known_type(const char *s, size_t n)
{
    if (n && strchr("<>|=", s[0])) {
        s++;
        n--;
    }
    return n && ((n == 1 && s[0] == 'O') || (n > 1 && s[0] == 'U'));
}

void zr_objects_type_name(const struct zr_objects *self, char name[ZR_OBJECTS_TYPE])
{
    (void)snprintf(name, ZR_OBJECTS_TYPE, "|O");
    if (self->type.kind)
        (void)snprintf(name, ZR_OBJECTS_TYPE, "%c%c%u", self->each > 1 ? '<' : '|',
                       zr_numpy_letter(&self->type), (unsigned)self->type.bytes);
}

zarr_status zr_objects_type(const struct zr_objects *self, const char *s, size_t n,
                            zarr_error *err)
{
    char name[ZR_OBJECTS_TYPE];

    zr_objects_type_name(self, name);
    if (self->type.kind && strlen(name) == n && memcmp(name, s, n) == 0)
        return ZARR_OK;
    if (self->type.kind)
        return zr_fail(err, ZARR_ERR_CORRUPT,
                       "%s: the chunk's elements are of type \"%.*s\", the array's of "
                       "\"%s\"",
                       self->codec, (int)ZR_MIN(n, (size_t)32), s, name);
    if (objects_is_known_type(s, n))
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_UNSUPPORTED,
                   "%s: the chunk's elements are of type \"%.*s\", only text of any "
                   "length (|O) is supported",
                   self->codec, (int)ZR_MIN(n, (size_t)32), s);
}

zarr_status zr_objects_number(const struct zr_objects *self, uint32_t kind,
                              struct zr_numpy_value v, const char *shown, uint64_t i,
                              uint8_t *to, zarr_error *err)
{
    const uint32_t want = self->type.kind;
    bool fits = kind == want ||
                (want == ZARR_KIND_INT && kind == ZARR_KIND_UINT && v.u <= INT64_MAX);
    char name[ZR_OBJECTS_TYPE];

    if (want == ZARR_KIND_FLOAT && (kind == ZARR_KIND_UINT || kind == ZARR_KIND_INT)) {
        v.d = kind == ZARR_KIND_INT ? (double)(int64_t)v.u : (double)v.u;
        fits = true;
    }
    if (want != ZARR_KIND_FLOAT && zr_numpy_wrap(&self->type, v.u) != v.u)
        fits = false;
    if (fits) {
        zr_numpy_store(&self->type, to, v);
        return ZARR_OK;
    }
    zr_objects_type_name(self, name);
    return zr_fail(err, ZARR_ERR_CORRUPT,
                   "%s: element %" PRIu64 " is %s, must be a \"%s\"", self->codec, i,
                   shown, name);
}

/* ---- nested lists ---------------------------------------------------------------- */

void zr_nest_begin(struct zr_nest *nest, const struct zr_objects *self, bool nested)
{
    *nest =
        (struct zr_nest){.open = 1, .ndim = nested ? self->ndim : ZR_MIN(self->ndim, 1)};
    nest->dims[0] = self->n;
    for (int32_t d = 0; nested && d < self->ndim; d++)
        nest->dims[d] = self->shape[d];
    nest->leaf = nest->ndim > 0 ? nest->ndim - 1 : 0;
}

void zr_nest_step(struct zr_nest *nest)
{
    int32_t d = nest->leaf;

    for (; d > 0 && ++nest->at[d] == nest->dims[d]; d--)
        nest->at[d] = 0;
    nest->open = d + 1;
}

/* ---- output -------------------------------------- */

void zr_put_bytes(struct zr_put *p, const void *from, uint64_t n)
{
    if (n && p->bytes <= p->room && n <= p->room - p->bytes)
        memcpy(p->to + p->bytes, from, (size_t)n);
    if (!zr_add(p->bytes, n, &p->bytes))
        p->bytes = UINT64_MAX;
}

void zr_put_byte(struct zr_put *p, unsigned byte)
{
    const uint8_t one = (uint8_t)byte;

    zr_put_bytes(p, &one, 1);
}

void zr_put_word(struct zr_put *p, const char *text)
{
    zr_put_bytes(p, text, strlen(text));
}

/* INVALID if the codec's options do not permit one of the numbers. */
static zarr_status objects_check_numbers(const struct zr_objects *self,
                                         const uint8_t *items, zarr_error *err)
{
    const bool json = self->json.comma != NULL;

    for (uint64_t i = 0; self->type.kind == ZARR_KIND_FLOAT && i < self->n; i++) {
        const double d = zr_numpy_load(&self->type, items + i * self->each).d;

        if (json && self->json.finite && !isfinite(d))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s: element %" PRIu64 " is not finite, allow_nan is false",
                           self->codec, i);
        if (!json && self->single && isfinite(d) && !isfinite((float)d))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s: element %" PRIu64
                           " is too large for 32 bits, use_single_float is true",
                           self->codec, i);
    }
    return ZARR_OK;
}

/* INVALID if the codec or its options do not permit a number inside the value. */
static zarr_status objects_check_value(const struct zr_objects *self,
                                       const struct zr_json *v, uint64_t i,
                                       zarr_error *err)
{
    const bool json = self->json.comma != NULL;
    const struct zr_value_rule rule = {.any_integer = json,
                                       .any_float = !json || !self->json.finite,
                                       .single = self->single};
    const char *why = zr_value_unfit(&rule, v);

    if (!why)
        return ZARR_OK;
    return zr_fail(err, ZARR_ERR_INVALID, "%s: element %" PRIu64 " %s", self->codec, i,
                   why);
}

static zarr_status objects_check_values(const struct zr_objects *self,
                                        const uint8_t *items, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_json_doc doc;
    bool is_value = false;

    zr_json_doc_init(&doc, self->alloc);
    for (uint64_t i = 0; i < self->n; i++) {
        const zarr_vlen item = zr_objects_item(items, i);

        st = zr_value_parse(&doc, &item, &is_value, err);
        if (st != ZARR_OK) {
            zr_prefix(err, st, "%s: element %" PRIu64, self->codec, i);
            goto out;
        }
        if (is_value)
            ZR_TRY(objects_check_value(self, doc.root, i, err));
    }
out:
    zr_json_doc_deinit(&doc);
    return st;
}

void zr_objects_put(const struct zr_objects *self, struct zr_put *p,
                    const zarr_vlen *item, zr_put_value *put_value, zr_put_text *put_text)
{
    struct zr_json_doc doc;
    bool is_value = false;

    if (item->bytes < 2 || *(const char *)item->data != ' ') {
        put_text(self, p, item);
        return;
    }
    zr_json_doc_init(&doc, self->alloc);
    if (zr_value_parse(&doc, item, &is_value, NULL) != ZARR_OK)
        p->failed = true; /* it was checked for anything else */
    else if (is_value)
        put_value(self, p, doc.root);
    else
        put_text(self, p, item);
    zr_json_doc_deinit(&doc);
}

static zarr_status objects_check(const struct zr_objects *self, const uint8_t *items,
                                 zarr_error *err)
{
    if (self->type.kind)
        return objects_check_numbers(self, items, err);
    for (uint64_t i = 0; i < self->n; i++) {
        zarr_vlen item;

        memcpy(&item, items + i * sizeof item, sizeof item);
        if (item.bytes > UINT32_MAX || (item.bytes && !item.data))
            return zr_fail(err, ZARR_ERR_INVALID,
                           "%s: element %" PRIu64 " of %" PRIu64 " bytes%s", self->codec,
                           i, item.bytes,
                           item.data ? ", at most 2^32 - 1 are possible" : " at NULL");
        if (item.bytes && !zr_utf8_is_valid(item.data, (size_t)item.bytes))
            return zr_fail(err, ZARR_ERR_INVALID, "%s: element %" PRIu64 " is not UTF-8",
                           self->codec, i);
    }
    return objects_check_values(self, items, err);
}

zarr_vlen zr_objects_item(const uint8_t *items, uint64_t i)
{
    zarr_vlen item;

    memcpy(&item, items + i * sizeof item, sizeof item);
    if (!item.data)
        item.bytes = 0;
    return item;
}

/* ---- entries of both tables ------------------------------------------------------ */

static zarr_status objects_decode_one(void *self_ptr, const struct zr_host_job *io,
                                      size_t *used, zarr_codec_exec *exec,
                                      zarr_error *err)
{
    const struct zr_objects *self = self_ptr;

    if (io->dst_bytes / self->each < self->n)
        return zr_no_room(err, self->codec);
    zr_values_begin(exec->thread_state, self->alloc);
    ZR_CHECK(self->form->read(self, exec->thread_state, io, err));
    *used = (size_t)self->n * self->each;
    return ZARR_OK;
}

/* Checks the elements, then writes them. */
static zarr_status objects_encode_one(void *self_ptr, const struct zr_host_job *io,
                                      size_t *used, zarr_codec_exec *exec,
                                      zarr_error *err)
{
    const struct zr_objects *self = self_ptr;
    struct zr_put p = {.to = io->dst, .room = io->dst_bytes};

    ZR_UNUSED(exec);
    if (io->src_bytes / self->each != self->n)
        return zr_internal(err);
    ZR_CHECK(objects_check(self, io->src, err));
    self->form->put(self, &p, io->src);
    if (p.failed)
        return zr_fail_memory(err, 0);
    if (p.bytes > p.room)
        return zr_too_long(err, self->codec, io->dst_bytes);
    *used = (size_t)p.bytes;
    return ZARR_OK;
}

zarr_status zr_objects_decode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(objects_decode_one, self, jobs, n, exec, err);
}

zarr_status zr_objects_encode(void *self, zarr_codec_job *jobs, uint64_t n,
                              zarr_codec_exec *exec, zarr_error *err)
{
    return zr_jobs_each(objects_encode_one, self, jobs, n, exec, err);
}

/* Encoding: the exact size, or 0 if it cannot be told. The elements are not checked: some
 * may be refused later, or be missing. */
uint64_t zr_objects_size_hint(void *self_ptr, const zarr_codec_job *job, int encode)
{
    const struct zr_objects *self = self_ptr;
    struct zr_put p = {0};
    uint8_t first = 0;

    if (!encode || job->src.bytes / self->each != self->n || !self->n ||
        !zr_job_peek(job, 0, &first, 1))
        return 0;
    self->form->put(self, &p, (const uint8_t *)job->src.handle + job->src.offset);
    return p.failed ? 0 : p.bytes;
}
