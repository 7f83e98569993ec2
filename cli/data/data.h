/*
 * data/data.h - elements of an array as bytes or text, for cat and export, and text and
 * .npy files as input of import and append.
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
    const struct cli_file *file; /* NULL: stdout */
    bool wrap_json;              /* cat --json: an object around the elements */
    const char *progress;        /* word that the progress line begins with, or NULL */
    bool *lost;     /* NULL: damage is an error; else becomes true if any was skipped */
    bool lost_fill; /* what is lost becomes the fill value, also if NaN exists */
};
/* Writes the node's region, or all of the array. */
int cli_dump(const struct cli_dump *dump);

/* ---- text.c: one element ---- */

/* The JSON that v3 has for a fill value; raw and NUL-padded bytes as a base64 string. */
int cli_element_json(struct cli *cli, const zarr_dtype *type, const void *element,
                     struct cli_string *out);
/* Readable text: 1.5, NaN, 1+2j, text without quotes, bytes with \xNN, raw as 0x... */
int cli_element_text(struct cli *cli, const zarr_dtype *type, const void *element,
                     struct cli_string *out);

/* A field of CSV, with quotes if it needs them. is_alone: the line has no other field. */
void cli_csv_field(const struct cli_string *field, bool is_alone, struct cli_string *out);
void cli_base64(const void *bytes, size_t n, struct cli_string *out);

/* ---- text_in.c: elements read from text ---- */

struct cli_elements {
    const zarr_dtype *type;
    size_t item_bytes;
    unsigned char *data; /* n items in C order */
    uint64_t n, cap;
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK]; /* of the nested lists, or the number of lines */
    uint64_t text_bytes;
};
#define CLI_TEXT_FORMATS "json|elements|lines"
bool cli_is_text_format(const char *format); /* NULL: false */
/* The format that the extension of a file's name stands for, one of CLI_DUMP_FORMATS, for
 * import and export; NULL: unknown. */
const char *cli_format_of_name(const char *path);
/* Reads all of a source in one of these formats. ndim: the rank of the array, or -1 if it
 * is not known; it is needed if elements are themselves lists. Always free *out. */
int cli_elements_read(struct cli *cli, struct cli_source *source, const char *format,
                      const zarr_dtype *type, int32_t ndim, struct cli_elements *out);
/* Converts n elements in native byte order to another type through their JSON, such as
 * text of fixed length to `string`. Always free *out. */
int cli_elements_convert(struct cli *cli, const zarr_dtype *from, const void *data,
                         uint64_t n, const char *name, const zarr_dtype *to,
                         struct cli_elements *out);
void cli_elements_free(struct cli_elements *e);

/* ---- npy.c ---- */

struct cli_npy {
    char type[64]; /* "<f4", for zarr_dtype_find(); "" for structs */
    char *fields;  /* of structs: [["a","<i4"],...], the caller frees it; else NULL */
    bool fortran;
    int32_t ndim;
    uint64_t shape[ZARR_MAX_RANK];
    uint64_t data_offset; /* of the first element in the file */
};
/* Makes the header for little-endian C-order data. Returns false if NumPy has no such
 * type; the header then says opaque bytes (|V). */
bool cli_npy_header(const zarr_dtype *type, int32_t ndim, const uint64_t *shape,
                    struct cli_string *out);
/* Whether a file of type `file` can hold elements of `type`, a type that NumPy lacks, as
 * cli_npy_header() or ml_dtypes writes it. */
bool cli_npy_represents(const zarr_dtype *file, const zarr_dtype *type);
/* Whether n elements of such a file are values of `type`: an int8 may be too large for
 * int4. */
bool cli_npy_fits(const zarr_dtype *file, const zarr_dtype *type, const void *elements,
                  uint64_t n);
/* Finds the data type that a file of that name has; prints the error. */
int cli_file_type(struct cli *cli, const char *file, const char *type,
                  const zarr_dtype **out);
/* Reads the header (versions 1, 2, 3) and nothing after it. */
int cli_npy_read(struct cli *cli, struct cli_source *source, struct cli_npy *out);

#endif
