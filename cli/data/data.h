/*
 * data/data.h - elements of an array as bytes or text: what cat and export share,
 * and the .npy header that import reads as well.
 */
#ifndef CLI_DATA_H
#define CLI_DATA_H

#include "node/node.h"

/* ---- dump.c ---- */

#define CLI_DUMP_FORMATS "text|csv|npy|raw|elements|json"

struct cli_dump {
    struct cli *cli;
    const struct cli_node *node; /* an array */
    const char *format;          /* one of CLI_DUMP_FORMATS */
    FILE *file;                  /* stdout: through cli_out() */
    bool wrap_json;              /* cat --json: an object round the elements */
    const char *progress;        /* word for the progress line, or NULL */
};
/* Writes the node's region (or all). */
int cli_dump(const struct cli_dump *dump);

/* ---- text.c: one element ---- */

/* The v3 fill-value JSON; raw and NUL-padded bytes as a base64 string. */
int cli_element_json(struct cli *cli, const zarr_dtype *type, const void *element,
                     struct cli_string *out);
/* For people: 1.5, NaN, 1+2j, text without quotes, bytes with \xNN, raw as 0x... */
int cli_element_text(struct cli *cli, const zarr_dtype *type, const void *element,
                     struct cli_string *out);

void cli_base64(const void *bytes, size_t n, struct cli_string *out);

/* ---- text_in.c: elements that come as text ---- */

struct cli_elements {
    const zarr_dtype *type;
    size_t item_bytes;
    unsigned char *data; /* n items in C order */
    uint64_t n, cap;
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK]; /* as the text is nested; of lines: their number */
    uint64_t text_bytes;
};
#define CLI_TEXT_FORMATS "json|elements|lines"
bool cli_is_text_format(const char *format); /* NULL: false */
/* The format that a file's name tells, one of CLI_DUMP_FORMATS, for import and export;
 * NULL: none. */
const char *cli_format_of_name(const char *path);
/* Reads a file of one of these formats whole. ndim: of the array, where it is known, else
 * -1: lists of elements that are lists leave it open. Always free *out. */
int cli_elements_read(struct cli *cli, FILE *file, const char *name, const char *format,
                      const zarr_dtype *type, int32_t ndim, struct cli_elements *out);
/* n elements of another type, by their JSON: text of fixed length to `string`, and so on.
 * native byte order. Always free *out. */
int cli_elements_convert(struct cli *cli, const zarr_dtype *from, const void *data,
                         uint64_t n, const char *name, const zarr_dtype *to,
                         struct cli_elements *out);
/* All of them in this shape. */
void cli_elements_tensor(const struct cli_elements *e, int32_t ndim,
                         const uint64_t *shape, int64_t shape_out[ZARR_MAX_RANK],
                         zarr_tensor *out);
void cli_elements_free(struct cli_elements *e);

/* ---- npy.c ---- */

struct cli_npy {
    char type[64]; /* "<f4": as zarr_dtype_find() takes it; "": fields */
    char *fields;  /* of structs: [["a","<i4"],...], owned by who read it; else NULL */
    bool fortran;
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
    uint64_t data_offset; /* of the first element in the file */
};
/* The header for little-endian C-order data; false: NumPy has no such type, so it is
 * written as bytes (|V). */
bool cli_npy_header(const zarr_dtype *type, int32_t ndim, const uint64_t *shape,
                    struct cli_string *out);
/* Whether a file's elements of the one type may be the other's, which NumPy lacks: as
 * cli_npy_header() writes it, or ml_dtypes. */
bool cli_npy_stands_for(const zarr_dtype *file, const zarr_dtype *type);
/* Then, whether n elements do: int8 can be more than int4. */
bool cli_npy_fits(const zarr_dtype *file, const zarr_dtype *type, const void *elements,
                  uint64_t n);
/* Reads the header (versions 1, 2, 3) from the beginning of a file; name is for messages.
 */
int cli_npy_read(struct cli *cli, FILE *file, const char *name, struct cli_npy *out);

/* ---- arrays as C-order files in memory (input.c) ---- */

/* A .npy or raw file, mapped, or a stream, read piece by piece. Zero it before. */
struct cli_input {
    const char *name; /* borrowed */
    FILE *file;
    bool is_npy, fortran;
    uint32_t byte_order; /* ZARR_ORDER_* */
    const zarr_dtype *dtype;
    int32_t ndim; /* 0 and no shape: a raw file */
    uint64_t shape[ZARR_MAX_RANK];
    uint64_t data_at, data_bytes; /* data_bytes: UINT64_MAX where it is not known */
    void *map;                    /* NULL for a stream */
    uint64_t map_bytes;
    bool has_first; /* the first byte of a raw stream, read to see what it is */
    unsigned char first;
};
/* format: "npy", "raw" or NULL: npy where the file says so. */
int cli_input_open(struct cli *cli, const char *name, const char *format,
                   struct cli_input *in);
/* Up to *bytes of a stream; less only at its end. */
int cli_input_read(struct cli *cli, struct cli_input *in, void *data, uint64_t *bytes);
void cli_input_close(struct cli_input *in);

#endif
