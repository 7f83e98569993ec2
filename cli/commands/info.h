/*
 * commands/info.h - what the parts of zarrc info share: info_array.c (an array's facts,
 * as text and as JSON) and cmd_info.c.
 */
#ifndef CLI_INFO_H
#define CLI_INFO_H

#include "node/node.h"

/* The chunks that are stored. */
struct info_stats {
    zarr_array *array;
    uint64_t n_objects, bytes, n_total;
    zarr_status st;
    zarr_error *err;
};

/* Chunks that the grid has. */
uint64_t info_grid_count(const zarr_array *array);
/* One line of facts. */
void info_row(struct cli *cli, const char *name, const char *format, ...)
    ZARR_PRINTF(3, 4);
/* attributes: a JSON object, one row a member. */
void info_attributes(struct cli *cli, const char *attributes);
/* stats NULL: not asked for. */
void info_array_text(struct cli *cli, const struct cli_node *node,
                     const struct info_stats *stats);
void info_array_json(struct cli *cli, const struct cli_node *node,
                     const struct info_stats *stats);

#endif
