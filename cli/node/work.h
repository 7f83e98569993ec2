/*
 * node/work.h - what the commands that copy, change and compare nodes share: lists
 * of nodes and objects, clocks, elements as numbers. Commands that only look
 * have no use for it.
 */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "node/node.h"

/* ---- a node and all below it (work.c) ---- */

struct cli_tree_item {
    char *path;    /* below the top, "" for the top itself */
    uint32_t kind; /* ZARR_NODE_*; NONE: its metadata cannot be read */
    int32_t zarr_format;
};

/* Parents before children, sorted by name. Zero it before. */
struct cli_tree {
    struct cli_tree_item *items;
    size_t n_items, cap;
};
/* Of an open node; looks at the store, never at consolidated metadata. */
int cli_tree_list(struct cli *cli, const struct cli_node *node, struct cli_tree *out);
void cli_tree_free(struct cli_tree *tree);
/* Whether there is a document below the node's own, as in a broken group. */
int cli_has_nodes_below(struct cli *cli, const struct cli_node *node, bool *out);
/* "group/temp" below "group" is "temp"; borrowed. */
const char *cli_path_below(const char *path, const char *top);
/* How to name an item of node's tree in messages: "x.zarr:/group/temp". Owned. */
char *cli_shown_below(const struct cli_node *node, const char *path);

/* Objects below a node; with_bytes: and their lengths, which may cost a request each. */
struct cli_objects {
    uint64_t n_objects, n_bytes;
};
int cli_objects_count(struct cli *cli, const struct cli_node *node, bool with_bytes,
                      struct cli_objects *out);
/* Length of one object as a listing told it, else as the store says; 0: nobody knows. */
uint64_t cli_object_bytes(zarr_store *store, const char *key, uint64_t listed);

/* CLI_EXISTS unless there is nothing at all: what is no node must not be deleted with
 * --force, nor be mixed with chunks. */
int cli_must_be_free(struct cli *cli, const struct cli_node *node);
/* The same where a node of kind NONE shall be created. With --force the library decides:
 * it deletes left-over chunks, never files of others. */
int cli_must_be_new(struct cli *cli, const struct cli_node *node);

/* CLI_EXISTS for a node with broken metadata, unless --force may replace it: never one
 * with nodes below. */
int cli_refuse_broken(struct cli *cli, const struct cli_node *node, bool may_replace);

/* Removes the folder that CLI_OPEN_NEW made, unless there is something in it. */
void cli_unmake_root(const struct cli_node *node);

/* Warns of groups above a changed node that hold consolidated metadata. */
void cli_warn_consolidated(struct cli *cli, const struct cli_node *node);

/* Seconds of a steady clock. */
double cli_seconds(void);

/* The folder of the node's store, as it was spelled; other stores: their URL. Borrowed.
 */
const char *cli_local_root(const struct cli_node *node);
/* Both nodes are in the same local folder, or the same store otherwise. */
bool cli_same_store(const struct cli_node *a, const struct cli_node *b);
/* An error where a file that is there lies in the node's own folder, by whatever name:
 * what --force would delete or overwrite is then what is read. */
int cli_must_be_outside(struct cli *cli, const char *file, const struct cli_node *node);

/* ---- elements as numbers (elements.c) ---- */

/* False for text, raw bytes, structs. Times are numbers: their count. */
bool cli_is_number(const zarr_dtype *type);
/* Real and imaginary part of one native-endian element. */
void cli_number(const zarr_dtype *type, const void *element, double out[2]);

#endif
