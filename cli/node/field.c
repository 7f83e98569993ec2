/*
 * node/field.c - arrays of structs: the field that --field selects, and the byte order
 * and padding of fields in files, which the library does not convert.
 */
#include "node/node.h"

#include <stdlib.h>
#include <string.h>

int cli_field_find(struct cli *cli, const struct cli_node *node, struct cli_field *out)
{
    zarr_dtype_field f = ZARR_DTYPE_FIELD_INIT;
    zarr_error err = {0};
    zarr_status st = ZARR_OK;

    *out = (struct cli_field){.n_values = 1,
                              .type = zarr_array_dtype(node->array),
                              .options = ZARR_IO_OPTIONS_INIT};
    out->options.field = cli_text(cli, "field");
    if (!out->options.field)
        return CLI_OK;
    st = zarr_dtype_field_find(out->type, out->options.field, &f, &err);
    if (st)
        return cli_fail(cli, st, &err, "cannot choose a field of %s", node->shown);
    out->type = f.dtype;
    out->offset = f.offset;
    out->ndim = f.ndim;
    memcpy(out->shape, f.shape, sizeof f.shape);
    out->n_values = cli_product(f.ndim, f.shape);
    return CLI_OK;
}

void cli_field_tensor(const struct cli_field *field, uint64_t shape[ZARR_MAX_RANK],
                      zarr_tensor *tensor)
{
    /* if there are too many, the library refuses ndim before it reads the shape */
    for (int32_t d = 0; d < field->ndim && tensor->ndim + d < ZARR_MAX_RANK; d++)
        shape[tensor->ndim + d] = field->shape[d];
    tensor->ndim += field->ndim;
}

/* ---- byte order in files ---- */

static bool host_is_little(void)
{
    const uint16_t one = 1;

    return *(const unsigned char *)&one == 1;
}

static void swap_units(unsigned char *at, uint64_t n, uint32_t unit)
{
    for (; n > 0; n--, at += unit)
        for (uint32_t i = 0; i < unit / 2; i++) {
            unsigned char byte = at[i];

            at[i] = at[unit - 1 - i];
            at[unit - 1 - i] = byte;
        }
}

struct swapping {
    const char *next; /* order of the next field that is not a struct; NULL: see all */
    bool all;         /* without `next`: swap every field */
};

/* Swaps the fields of n structs, `stride` bytes apart. Recurses as deep as the type. */
static void swap_fields(struct swapping *t, const zarr_dtype *type, unsigned char *at,
                        uint64_t n, uint64_t stride)
{
    const char ours = host_is_little() ? '<' : '>';

    for (uint64_t i = 0; i < zarr_dtype_n_fields(type); i++) {
        zarr_dtype_field f = ZARR_DTYPE_FIELD_INIT;
        uint64_t values, bytes;

        if (zarr_dtype_field_at(type, i, &f, NULL) != ZARR_OK)
            return;
        values = cli_product(f.ndim, f.shape);
        bytes = zarr_dtype_item_bytes(f.dtype);
        if (zarr_dtype_n_fields(f.dtype) > 0) {
            const char *first = t->next;

            for (uint64_t k = 0; k < n; k++) {
                t->next = first;
                swap_fields(t, f.dtype, at + f.offset + k * stride, values, bytes);
            }
        } else {
            const uint32_t unit = zarr_dtype_swap_bytes(f.dtype);
            const char letter = t->next && *t->next ? *t->next++ : '\0';

            if (unit < 2 || (letter ? letter == ours || letter == '=' : !t->all))
                continue;
            for (uint64_t k = 0; k < n; k++)
                swap_units(at + f.offset + k * stride, values * (bytes / unit), unit);
        }
    }
}

void cli_elements_swap(const zarr_dtype *type, const char *orders, uint32_t byte_order,
                       void *data, uint64_t n)
{
    struct swapping t = {orders, (byte_order == ZARR_ORDER_BIG) == host_is_little()};
    const uint64_t bytes = zarr_dtype_item_bytes(type);
    const uint32_t unit = zarr_dtype_swap_bytes(type);

    if (!orders && !t.all)
        return;
    if (zarr_dtype_n_fields(type) == 0 && unit > 1)
        swap_units(data, n * (bytes / unit), unit);
    for (uint64_t i = 0; i < n; i++) {
        t.next = orders;
        swap_fields(&t, type, (unsigned char *)data + i * bytes, 1, bytes);
    }
}

char *cli_struct_orders(const char *list)
{
    struct cli_string out = {0};
    bool in_name = false; /* the first string of a field's list is its name */

    cli_string_add(&out, "", 0);
    for (const char *s = list; *s; s++) {
        if (*s == '[')
            in_name = true;
        if (*s != '"')
            continue;
        if (!in_name)
            cli_string_add(&out, s[1] == '>' ? ">" : s[1] == '=' ? "=" : "<", 1);
        in_name = false;
        for (s++; *s && *s != '"'; s++)
            s += *s == '\\' && s[1];
        if (!*s)
            break;
    }
    return out.text;
}

/* ---- padding in files ---- */

bool cli_fields_have_padding(const char *list)
{
    return list && strstr(list, "[\"\",") != NULL;
}

bool cli_fields_unpad(const char *list, char **named, char **unpadded)
{
    struct cli_string all = {0}, some = {0};
    bool ok = true;
    int n = 0;

    cli_string_add(&some, "", 0);
    while (*list && ok) {
        const char *end;

        if (strncmp(list, "[\"\",", 4) != 0) {
            cli_string_add(&all, list, 1);
            if (*list != ',' || some.text[some.n_bytes - 1] != '[') /* after padding */
                cli_string_add(&some, list, 1);
            list++;
            continue;
        }
        end = cli_json_value_end(list);
        ok = strncmp(list + 4, "\"|V", 3) == 0;
        cli_string_printf(&all, "[\"\\u0001%d\",", n++);
        cli_string_add(&all, list + 4, (size_t)(end - list) - 4);
        if (some.n_bytes > 0 && some.text[some.n_bytes - 1] == ',')
            some.n_bytes--;
        list = end;
    }
    some.text[some.n_bytes] = '\0';
    *named = all.text;
    *unpadded = some.text;
    return ok;
}

/* Works in place from front to back: a field never moves to a higher address. Recurses as
 * deep as the type. */
static void pack_fields(const zarr_dtype *from, const unsigned char *src,
                        const zarr_dtype *to, unsigned char *dst)
{
    uint64_t k = 0;

    for (uint64_t i = 0; i < zarr_dtype_n_fields(from); i++) {
        zarr_dtype_field f = ZARR_DTYPE_FIELD_INIT, t = ZARR_DTYPE_FIELD_INIT;
        uint64_t n, bytes, packed;

        if (zarr_dtype_field_at(from, i, &f, NULL) != ZARR_OK || f.name[0] == '\1' ||
            zarr_dtype_field_at(to, k++, &t, NULL) != ZARR_OK)
            continue;
        n = cli_product(f.ndim, f.shape);
        bytes = zarr_dtype_item_bytes(f.dtype);
        packed = zarr_dtype_item_bytes(t.dtype);
        if (zarr_dtype_n_fields(f.dtype) == 0)
            memmove(dst + t.offset, src + f.offset, (size_t)(n * bytes));
        else
            for (uint64_t v = 0; v < n; v++)
                pack_fields(f.dtype, src + f.offset + v * bytes, t.dtype,
                            dst + t.offset + v * packed);
    }
}

void cli_struct_pack(const zarr_dtype *from, const zarr_dtype *to, void *data, uint64_t n)
{
    const uint64_t bytes = zarr_dtype_item_bytes(from),
                   packed = zarr_dtype_item_bytes(to);

    for (uint64_t i = 0; i < n; i++)
        pack_fields(from, (const unsigned char *)data + i * bytes, to,
                    (unsigned char *)data + i * packed);
}
