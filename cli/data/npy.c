/*
 * data/npy.c - the header of NumPy's .npy files: magic, version, length, and a Python
 * dict of three members. Version 1 is written, 2 if the header is longer than 64 KiB, 3
 * if a field's name is not ASCII. Versions 1, 2 and 3 are read, with the members in any
 * order. Fields of structs become the JSON list that v2 metadata has. Object arrays are
 * refused.
 */
#include "data/data.h"
#include "node/node.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char magic[] = "\x93NUMPY";
enum {
    MAGIC_BYTES = 6,
    ALIGNMENT = 64,
    MAX_HEADER = 1 << 20
};

/* ---- writing ---- */

static bool type_text(const zarr_dtype *type, char text[64])
{
    const char *numpy = zarr_dtype_numpy(type);
    const uint32_t kind = zarr_dtype_kind(type);
    uint64_t bytes = zarr_dtype_item_bytes(type);

    if (numpy && (*numpy == '<' || *numpy == '|')) {
        snprintf(text, 64, "%s", numpy);
        return true;
    }
    if ((kind == ZARR_KIND_INT || kind == ZARR_KIND_UINT) &&
        bytes == 1) { /* int4 in a byte */
        snprintf(text, 64, "|%s1", kind == ZARR_KIND_INT ? "i" : "u");
        return true;
    }
    /* As NumPy saves types of ml_dtypes: the user loads it and calls view(). */
    snprintf(text, 64, "%cV%" PRIu64, bytes > 1 ? '<' : '|', bytes);
    return false;
}

/* A Python string. */
static void add_name(struct cli_string *out, const char *name)
{
    cli_string_add(out, "'", 1);
    for (; *name; name++)
        if (*name == '\'' || *name == '\\')
            cli_string_printf(out, "\\%c", *name);
        else if ((unsigned char)*name < 0x20)
            cli_string_printf(out, "\\x%02x", (unsigned)*name);
        else
            cli_string_add(out, name, 1);
    cli_string_add(out, "'", 1);
}

/* Adds the type as in NumPy's descr: "'<f4'", or a list of fields. Returns false if NumPy
 * lacks the type. Recurses as deep as the type. */
static bool add_descr(struct cli_string *out, const zarr_dtype *type)
{
    const uint64_t n = zarr_dtype_n_fields(type);
    bool exact = true;
    char text[64];

    if (n == 0) {
        exact = type_text(type, text);
        cli_string_printf(out, "'%s'", text);
        return exact;
    }
    for (uint64_t i = 0; i < n; i++) {
        zarr_dtype_field f = ZARR_DTYPE_FIELD_INIT;

        if (zarr_dtype_field_at(type, i, &f, NULL) != ZARR_OK)
            return false;
        cli_string_printf(out, i ? ", (" : "[(");
        add_name(out, f.name);
        cli_string_printf(out, ", ");
        exact = add_descr(out, f.dtype) && exact;
        if (f.ndim > 0) {
            char *shape = cli_shape_text(f.ndim, f.shape);

            cli_string_printf(out, ", %s", shape);
            free(shape);
        }
        cli_string_printf(out, ")");
    }
    cli_string_printf(out, "]");
    return exact;
}

/* cli_npy_represents() for types without fields: the inverse of type_text(). */
static bool leaf_represents(const zarr_dtype *file, const zarr_dtype *type)
{
    const char *numpy = zarr_dtype_numpy(type);
    const uint32_t kind = zarr_dtype_kind(type), is = zarr_dtype_kind(file);

    if (numpy && (*numpy == '<' || *numpy == '|'))
        return false;
    return is == ZARR_KIND_RAW || (is == kind && zarr_dtype_item_bytes(type) == 1 &&
                                   (kind == ZARR_KIND_INT || kind == ZARR_KIND_UINT));
}

static bool same_position(const zarr_dtype_field *a, const zarr_dtype_field *b)
{
    return strcmp(a->name, b->name) == 0 && a->offset == b->offset &&
           a->ndim == b->ndim &&
           memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0;
}

/* Whether all int8 values fit into a type with fewer bits. */
static bool leaf_fits(const zarr_dtype *file, const zarr_dtype *type, const int8_t *value,
                      uint64_t n)
{
    const uint64_t bits = zarr_dtype_item_bits(type);

    if (zarr_dtype_kind(file) != ZARR_KIND_INT || zarr_dtype_item_bytes(file) != 1)
        return true;
    for (uint64_t i = 0; i < n && bits < 8; i++)
        if (value[i] < -(1 << (bits - 1)) || value[i] >= 1 << (bits - 1))
            return false;
    return true;
}

/* Recurses as deep as the types. */
bool cli_npy_fits(const zarr_dtype *file, const zarr_dtype *type, const void *elements,
                  uint64_t n)
{
    const uint64_t bytes = zarr_dtype_item_bytes(file);

    if (zarr_dtype_n_fields(file) == 0)
        return leaf_fits(file, type, elements, n);
    for (uint64_t i = 0; i < zarr_dtype_n_fields(file); i++) {
        zarr_dtype_field a = ZARR_DTYPE_FIELD_INIT, b = ZARR_DTYPE_FIELD_INIT;

        if (zarr_dtype_field_at(file, i, &a, NULL) != ZARR_OK ||
            zarr_dtype_field_at(type, i, &b, NULL) != ZARR_OK)
            return false;
        for (uint64_t k = 0; k < n; k++)
            if (!cli_npy_fits(a.dtype, b.dtype,
                              (const char *)elements + k * bytes + a.offset,
                              cli_product(a.ndim, a.shape)))
                return false;
    }
    return true;
}

/* Recurses as deep as the types. */
bool cli_npy_represents(const zarr_dtype *file, const zarr_dtype *type)
{
    const uint64_t n = zarr_dtype_n_fields(type);

    if (zarr_dtype_equal(file, type))
        return true;
    if (zarr_dtype_variable(type) || zarr_dtype_n_fields(file) != n ||
        zarr_dtype_item_bytes(file) != zarr_dtype_item_bytes(type))
        return false;
    for (uint64_t i = 0; i < n; i++) {
        zarr_dtype_field a = ZARR_DTYPE_FIELD_INIT, b = ZARR_DTYPE_FIELD_INIT;

        if (zarr_dtype_field_at(file, i, &a, NULL) != ZARR_OK ||
            zarr_dtype_field_at(type, i, &b, NULL) != ZARR_OK || !same_position(&a, &b) ||
            !cli_npy_represents(a.dtype, b.dtype))
            return false;
    }
    return n > 0 || leaf_represents(file, type);
}

static bool is_ascii(const struct cli_string *s)
{
    for (size_t i = 0; i < s->n_bytes; i++)
        if ((unsigned char)s->text[i] > 0x7f)
            return false;
    return true;
}

bool cli_npy_header(const zarr_dtype *type, int32_t ndim, const uint64_t *shape,
                    struct cli_string *out)
{
    struct cli_string dict = {0};
    char *lengths = cli_shape_text(ndim, shape);
    bool exact;
    size_t head = MAGIC_BYTES + 2 + 2, padding;
    unsigned char version[2] = {1, 0}, length[4];

    cli_string_printf(&dict, "{'descr': ");
    exact = add_descr(&dict, type);
    cli_string_printf(&dict, ", 'fortran_order': False, 'shape': %s, }", lengths);
    if (dict.n_bytes + ALIGNMENT > 65535 || !is_ascii(&dict)) {
        version[0] = is_ascii(&dict) ? 2 : 3;
        head += 2;
    }
    padding = ALIGNMENT - (head + dict.n_bytes + 1) % ALIGNMENT;
    for (size_t i = 0; i < padding % ALIGNMENT; i++)
        cli_string_add(&dict, " ", 1);
    cli_string_add(&dict, "\n", 1);
    for (size_t i = 0; i < 4; i++)
        length[i] = (unsigned char)(dict.n_bytes >> (8 * i));
    cli_string_add(out, magic, MAGIC_BYTES);
    cli_string_add(out, version, 2);
    cli_string_add(out, length, version[0] == 1 ? 2 : 4);
    cli_string_add(out, dict.text, dict.n_bytes);
    cli_string_free(&dict);
    free(lengths);
    return exact;
}

/* ---- reading ---- */

int cli_file_type(struct cli *cli, const char *file, const char *type,
                  const zarr_dtype **out)
{
    zarr_error err = {0};
    const zarr_status st = zarr_dtype_find(out, cli->ctx, type, &err);

    return st ? cli_fail(cli, st, &err, "data type of %s", file) : CLI_OK;
}

/* Adds a Python string as a JSON string. *at is its first quote, and is set to the end of
 * the string. latin1: the header is Latin-1 (versions 1 and 2), not UTF-8. */
static bool add_string(struct cli_string *out, const char **at, bool latin1)
{
    const char quote = *(*at)++;
    const char *s = *at;

    cli_string_add(out, "\"", 1);
    for (; *s && *s != quote; s++) {
        const unsigned char c = (unsigned char)*s;

        if (c == '\\' && s[1] == 'x' && isxdigit((unsigned char)s[2]) &&
            isxdigit((unsigned char)s[3])) {
            cli_string_printf(out, "\\u00%.2s", s + 2);
            s += 3;
        } else if (c == '\\' && s[1]) {
            s++;
            cli_string_printf(out, *s == '\'' ? "'" : "\\%c", *s);
        } else if (c == '"') {
            cli_string_add(out, "\\\"", 2);
        } else if (c > 0x7f && latin1) {
            cli_string_printf(out, "\\u00%02x", c);
        } else {
            cli_string_add(out, s, 1);
        }
    }
    cli_string_add(out, "\"", 1);
    *at = s + 1;
    return *s == quote;
}

/* The JSON of a Python word; NULL: it is none. */
static const char *read_word(const char *at)
{
    return strncmp(at, "True", 4) == 0    ? "true"
           : strncmp(at, "False", 5) == 0 ? "false"
                                          : NULL;
}

/* The Python dict as JSON, owned by the caller; NULL if it is not valid. Tuples become
 * lists. The library checks the contents of a list of fields. */
static char *read_dict(const char *at, bool latin1)
{
    static const char python[] = "{[(}])", json[] = "{[[}]]";
    struct cli_string out = {0};
    int depth = 0;

    do {
        const char *bracket = *at ? strchr(python, *at) : NULL, *word = read_word(at);

        if (bracket) {
            const bool opens = bracket < python + 3;

            if (!opens && depth > 0 && out.text[out.n_bytes - 1] == ',') /* as in (3,) */
                out.n_bytes--;
            cli_string_add(&out, &json[bracket - python], 1);
            depth += opens ? 1 : -1;
        } else if (*at == '\'' || *at == '"') {
            if (!add_string(&out, &at, latin1))
                break;
            continue;
        } else if (word) {
            cli_string_printf(&out, "%s", word);
            at += strlen(word) - 1;
        } else if (*at == ',' || *at == ':' || isdigit((unsigned char)*at)) {
            cli_string_add(&out, at, 1);
        } else if (!strchr(" \nuL", *at) || !*at) { /* u'text', 3L: Python 2 */
            break;
        }
        at++;
    } while (depth > 0);
    if (depth == 0)
        return out.text;
    cli_string_free(&out);
    return NULL;
}

static bool read_type(const char *descr, size_t bytes, struct cli_npy *out)
{
    char *type = descr ? cli_json_unquote(descr, bytes) : NULL;
    const bool ok = type && *type && strlen(type) < sizeof out->type;

    if (ok) /* float8_e5m2 of ml_dtypes; NumPy lacks it */
        snprintf(out->type, sizeof out->type, "%s",
                 strcmp(type, "<f1") == 0 || strcmp(type, "|f1") == 0 ? "|V1" : type);
    free(type);
    return ok;
}

static int wrong(struct cli *cli, const char *name, const char *what)
{
    return cli_error(cli, CLI_CORRUPT, NULL, "%s is not a valid .npy file: %s", name,
                     what);
}

static int parse_dict(struct cli *cli, const char *name, const char *dict,
                      struct cli_npy *out)
{
    size_t n = 0, n_shape = 0, n_fortran;
    const char *descr = cli_json_member(dict, "descr", &n);
    const char *lengths = cli_json_member(dict, "shape", &n_shape);
    const char *fortran = cli_json_member(dict, "fortran_order", &n_fortran);
    char *shape = cli_format("%.*s", (int)n_shape, lengths ? lengths : "");
    int rc = CLI_OK;

    if (descr && *descr == '[')
        out->fields = cli_format("%.*s", (int)n, descr);
    else if (!read_type(descr, n, out))
        rc = wrong(cli, name, "no descr");
    if (!rc && strchr(out->type, 'O'))
        rc = cli_error(cli, CLI_UNSUPPORTED, NULL, "%s holds Python objects", name);
    out->fortran = fortran && *fortran == 't';
    if (!rc && !out->fortran && (!fortran || *fortran != 'f'))
        rc = wrong(cli, name, "no fortran_order");
    if (!rc && (*shape != '[' || !cli_parse_shape(shape, false, out->shape, &out->ndim)))
        rc = wrong(cli, name, "no shape");
    free(shape);
    return rc;
}

/* A file of another format is not a store, and the library says what it is. */
static int refuse_other(struct cli *cli, const char *name)
{
    zarr_store *store = NULL;
    zarr_error err = {0};
    const zarr_status st = zarr_store_open(&store, cli->ctx, name, NULL, &err);

    zarr_store_free(store);
    return st == ZARR_ERR_UNSUPPORTED
               ? cli_fail(cli, st, &err, "%s is not a .npy file", name)
               : CLI_OK;
}

/* Reads `bytes` of the header, which must have as many. */
static int read_part(struct cli *cli, struct cli_source *source, void *data, size_t bytes)
{
    size_t n = bytes;
    const int rc = cli_source_read(cli, source, data, &n);

    return !rc && n < bytes ? wrong(cli, source->name, "it ends inside the header") : rc;
}

/* Reads magic and version. */
static int read_magic(struct cli *cli, struct cli_source *source, unsigned char head[8])
{
    size_t n = 8;
    int rc = cli_source_read(cli, source, head, &n);

    if (rc)
        return rc;
    if (n < 8 || memcmp(head, magic, MAGIC_BYTES) != 0) {
        rc = refuse_other(cli, source->name);
        return rc ? rc : wrong(cli, source->name, "it does not begin with \\x93NUMPY");
    }
    if (head[6] < 1 || head[6] > 3)
        return cli_error(cli, CLI_UNSUPPORTED, NULL, "%s: unknown .npy version %d",
                         source->name, head[6]);
    return CLI_OK;
}

int cli_npy_read(struct cli *cli, struct cli_source *source, struct cli_npy *out)
{
    unsigned char head[12];
    size_t n_length, bytes = 0;
    char *text, *dict = NULL;
    int rc = read_magic(cli, source, head);

    *out = (struct cli_npy){.ndim = 0};
    if (rc)
        return rc;
    n_length = head[6] == 1 ? 2 : 4;
    rc = read_part(cli, source, head + 8, n_length);
    if (rc)
        return rc;
    for (size_t i = n_length; i-- > 0;)
        bytes = bytes << 8 | head[8 + i];
    if (bytes > MAX_HEADER)
        return cli_error(cli, CLI_CORRUPT, NULL,
                         "%s: the header has %zu bytes, over 1 MiB", source->name, bytes);
    text = cli_alloc(bytes + 1);
    rc = read_part(cli, source, text, bytes);
    if (!rc)
        dict = *text == '{' ? read_dict(text, head[6] < 3) : NULL;
    if (!rc)
        rc = dict ? parse_dict(cli, source->name, dict, out)
                  : wrong(cli, source->name, "its header is not a Python dict");
    out->data_offset = 8 + n_length + bytes;
    free(dict);
    free(text);
    return rc;
}
