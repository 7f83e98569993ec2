/*
 * commands/info.h - what the files of zarrc info share: info_array.c (properties of an
 * array, as text and as JSON) and cmd_info.c.
 */
#ifndef CLI_INFO_H
#define CLI_INFO_H

#include "node/node.h"

/* The keys below a node, and the bytes that they take on a local disk. */
struct info_files {
    uint64_t n, allocated;
    bool is_known; /* false: the store cannot list */
    bool is_local; /* false: `allocated` means nothing */
};

/* A node that cannot be opened, or whose chunks cannot be listed. */
struct info_fault {
    char *path, *reason; /* owned */
    zarr_status status;
    bool is_limit; /* of this run: it can be raised */
};

/* What is stored: sums of an array, or of a group and everything below it; UINT64_MAX:
 * more than 64 bits. */
struct info_stats {
    uint64_t n_arrays, n_groups;
    uint64_t n_objects, n_total, bytes, decoded;
    struct info_fault *fault;
    size_t n_faults;
    struct info_files files;
};

/* The number of chunks of the outer grid: shards, if the array is sharded. */
uint64_t info_grid_count(const zarr_array *array);
/* The bytes of all elements in memory; UINT64_MAX: more than 64 bits. */
uint64_t info_decoded_bytes(const zarr_array *array);
/* Writes a count, or null for UINT64_MAX. */
void info_count_json(struct cli_json *j, uint64_t n);
/* Prints one property as a line. */
void info_row(struct cli *cli, const char *name, const char *format, ...)
    ZARR_PRINTF(3, 4);
/* Whether the array is the coordinate of the dimension of its name. */
bool info_is_coordinate(const zarr_array *array, const char *name);
/* Prints a member of a group as ncdump -h does: its dimensions and type, and the
 * attributes that tell what its values mean. files: more text for its line, or "". */
void info_variable_text(struct cli *cli, const zarr_array *array, const char *name,
                        const char *files);
/* Prints one line for each member of a JSON object. */
void info_attributes(struct cli *cli, const char *attributes);
/* "12 files, 48 KiB allocated" after another text, or "" if they are not known; as a
 * line; as the members "files" and "allocated_bytes". */
void info_files_format(const struct info_files *f, const char *before, char *text,
                       size_t cap);
void info_files_text(struct cli *cli, const struct info_files *f);
void info_files_json(struct cli_json *j, const struct info_files *f);
/* Writes the member "stored". */
void info_stats_json(struct cli_json *j, const struct info_stats *s, bool is_group);
/* What the store has sent and received so far, if it has a network, and the dead bytes of
 * an archive: two lines, or the members "requests" and "dead". */
void info_store_text(struct cli *cli, const zarr_store *store);
void info_store_json(struct cli_json *j, const zarr_store *store);
/* stats: NULL without --stats. */
void info_array_text(struct cli *cli, const struct cli_node *node,
                     const struct info_stats *stats);
void info_array_json(struct cli *cli, const struct cli_node *node,
                     const struct info_stats *stats);

#endif
