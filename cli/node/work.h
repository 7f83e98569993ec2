/*
 * node/work.h - functions of the commands that copy, change and compare nodes: lists of
 * nodes and objects, checks before a node is created, a clock, elements as numbers.
 */
#ifndef CLI_WORK_H
#define CLI_WORK_H

#include "node/node.h"

/* ---- a node and everything below it (work.c) ---- */

struct cli_tree_item {
    char *path;    /* relative to the top node; "" for the top node itself */
    uint32_t kind; /* ZARR_NODE_*; NONE: its metadata cannot be read */
    int32_t zarr_format;
};

/* Parents before children, sorted by name. Zero it before use. */
struct cli_tree {
    struct cli_tree_item *items;
    size_t n_items, cap;
};
/* Lists an open node and everything below it. Reads the store, not consolidated
 * metadata. */
int cli_tree_list(struct cli *cli, const struct cli_node *node, struct cli_tree *out);
void cli_tree_free(struct cli_tree *tree);
/* Whether what is stored causes this status, as verify decides it. Otherwise the store
 * fails as a whole. */
bool cli_is_node_fault(zarr_status st, const zarr_error *err);
/* Whether any metadata document is below the node; also for broken groups. */
int cli_has_nodes_below(struct cli *cli, const struct cli_node *node, bool *out);
/* The path relative to top: "group/temp" below "group" is "temp"; borrowed. */
const char *cli_path_below(const char *path, const char *top);
/* The name of an item of node's tree in messages: "x.zarr:/group/temp". Owned. */
char *cli_shown_below(const struct cli_node *node, const char *path);
/* The name in messages of a path in node's store. Owned. */
char *cli_shown_at(const struct cli_node *node, const char *path);
/* The kind of the node at a path, ZARR_NODE_*; NONE if it cannot be read. *format (NULL
 * permitted): 0 if there is no node, not even a broken one; -1 if that is not known. */
uint32_t cli_kind_at(zarr_store *store, const char *path, int32_t *format);

/* Counts the objects below a node. how: ZARR_LIST_RECURSIVE, or ZARR_LIST_UNLINKED for
 * what a deletion removes: a symbolic link is one object. with_bytes: adds up their
 * lengths, which may cost a request for each object. */
struct cli_objects {
    uint64_t n_objects, n_bytes;
};
int cli_objects_count(struct cli *cli, const struct cli_node *node, uint32_t how,
                      bool with_bytes, struct cli_objects *out);
/* Whether the store can list. If not, a warning says what is `done` with the objects that
 * the metadata of the node names. */
bool cli_can_list(struct cli *cli, const struct cli_node *node, const char *done);
/* The length of one object: `listed` if the listing had it (not UINT64_MAX), else as the
 * store reports it; 0 if the store does not know. */
uint64_t cli_object_bytes(zarr_store *store, const char *key, uint64_t listed);

/* Returns CLI_EXISTS if any object is at a missing node's path: --force must not delete
 * files that are not a node, and a copy must not mix with them. */
int cli_require_empty(struct cli *cli, const struct cli_node *node);
/* The same check before an array is created at a missing node's path. With --force it
 * passes, and the library decides: it deletes left-over chunks, but no other files. */
int cli_require_unused(struct cli *cli, const struct cli_node *node);
/* The same check before a group is created there. A folder with nodes in it may become a
 * group, and with --force any folder. */
int cli_require_no_files(struct cli *cli, const struct cli_node *node);

/* Returns CLI_EXISTS for a node with broken metadata, unless --force may replace it. A
 * node with nodes below it is never replaced. */
int cli_refuse_broken(struct cli *cli, const struct cli_node *node, bool may_replace);

/* Removes the folder that CLI_OPEN_NEW created, if it is empty. */
void cli_remove_empty_root(const struct cli_node *node);

/* The option of commands that an interruption leaves incomplete, and that the same
 * command continues. complete: what it does if the command was complete. */
#define CLI_RESUME_OPTION(complete)                                                      \
    {                                                                                    \
        "resume", 0, 0, NULL, NULL,                                                      \
            "continue the same command after an interruption; start it if nothing was "  \
            "written yet, and " complete                                                 \
    }
#define CLI_RESUME_DOES_NOTHING "do nothing if it is complete"
/* --force deletes what --resume would continue. */
int cli_check_resume(struct cli *cli);
/* The option of commands that call cli_update_after(). */
#define CLI_CONSOLIDATED_OPTION                                                          \
    {                                                                                    \
        "no-consolidate", 0, 0, NULL, NULL,                                              \
            "do not bring consolidated metadata of the groups above up to date"          \
    }
/* After a command that may have changed a node: brings consolidated metadata of the
 * groups above it up to date; below: for all nodes below it as well. Warns if it cannot,
 * or if --no-consolidate leaves it as it is. Then flushes the store: call it after
 * the last change. rc is the exit code of the command. If it failed, node->began alone
 * decides, because every exit code can come after a part of the change. Returns rc, or
 * how the update ended if that is CLI_OK. */
int cli_update_after(struct cli *cli, struct cli_node *node, bool below, int rc);
/* What an rm or an mv that was killed at its very end leaves: a folder without objects.
 */
bool cli_is_empty_folder(const struct cli_node *node);
int cli_delete_folder(struct cli *cli, struct cli_node *node);
/* Whether a copy can change its destination: the library refuses a node that exists,
 * unless --force is given, or the command resumes. For node->began. */
bool cli_copy_may_begin(const struct cli *cli, const struct cli_node *dst,
                        bool is_resumed);

/* Seconds of a monotonic clock. */
double cli_seconds(void);

/* The folder of the node's store, as the user spelled it; the URL of any other store.
 * Borrowed. */
const char *cli_local_root(const struct cli_node *node);
/* Whether both nodes are in the same local folder or use the same store handle. */
bool cli_same_store(const struct cli_node *a, const struct cli_node *b);
/* If both nodes are in one archive, src gets the store of dst, which writes it: a store
 * that only reads an archive fails when that changes. */
int cli_share_archive(struct cli *cli, struct cli_node *src, const struct cli_node *dst);
/* An error if an existing file is inside the node's own folder, after links are resolved:
 * --force would delete or overwrite data that the command reads. */
int cli_require_outside(struct cli *cli, const char *file, const struct cli_node *node);

/* ---- what an interrupted command left (job.c) ---- */

struct cli_job {
    char *command;
    char *source, *destination; /* NULL if they are not known */
};
/* False: there is no job object at the path. */
bool cli_job_read(zarr_store *store, const char *path, struct cli_job *out);
void cli_job_free(struct cli_job *job);
/* Whether the command was deleting the node: an rm, or the last step of an mv. */
bool cli_job_deletes(const struct cli_job *job);
/* Whether the command was the last step of an import that replaces an array, in a store
 * where it is a copy: the whole new array is still at the temporary location. */
bool cli_job_is_of_import(const struct cli_job *job);
/* Puts the job object of this command, and removes it. */
int cli_job_begin(struct cli *cli, zarr_store *store, const char *path,
                  const char *source);
void cli_job_end(struct cli *cli, zarr_store *store, const char *path);
/* The node's name in a job object of the library, whatever the current folder. Owned. */
char *cli_job_name(const struct cli_node *node);
int cli_job_error(struct cli *cli, int exit_code, const struct cli_job *job,
                  const char *shown);
/* CLI_EXISTS if there is a job object at a missing node's path, where a new node cannot
 * be made. */
int cli_job_refuse(struct cli *cli, const struct cli_node *node);
/* What is appended to the name of an array while an import that replaces it is at work.
 */
#define CLI_STAGING_SUFFIX ".zarrc-import"
/* An error if there is a job object at or above a missing node's path, or the new array
 * of an interrupted import next to it. */
int cli_job_check_missing(struct cli *cli, const struct cli_node *node);
/* Warns if there is a job object at a node. */
void cli_job_warn(struct cli *cli, const struct cli_node *node);
/* A location as one word of a shell, without control characters. Owned. */
char *cli_shell_word(const char *text);
/* Whether the node is missing, and all keys at its path are chunks of an array that was
 * deleted in part, without a job object (orphans.c). */
bool cli_rest_of_array(const struct cli_node *node);
/* Whether the node is missing, and --force may replace what is left there: of a delete of
 * an array, or of a new array that was interrupted before it had a document. */
bool cli_can_replace_rest(const struct cli_node *node);
int cli_rest_error(struct cli *cli, int exit_code, const struct cli_node *node);
/* Calls fn for each job object at and below a node. Goes on past folders that cannot be
 * read. */
typedef void (*cli_job_fn)(void *user, const char *key, const char *command,
                           const char *hint);
int cli_jobs_each(struct cli *cli, const struct cli_node *node, cli_job_fn fn,
                  void *user);

/* Calls fn for each folder of the groups at and below a node that should be a node and
 * has no document: chunks of an array (is_group false), or nodes or chunks below it. Also
 * for those that cannot be read.
 * Folders with a job object are not told, nor folders inside of one that is told. path is
 * in the store; hint names the command that mends it. */
struct cli_rest {
    const char *path, *hint;
    bool is_group;
    const zarr_error
        *read_error; /* not NULL: the folder cannot be read, and has no hint */
};
typedef void (*cli_rest_fn)(void *user, const struct cli_rest *rest);
int cli_rests_each(struct cli *cli, const struct cli_node *node, cli_rest_fn fn,
                   void *user);
/* What kind of node the objects at a path are of: a group has documents below it, an
 * array only chunks. NONE: neither. */
uint32_t cli_kind_below(zarr_store *store, const char *path);

/* ---- elements as numbers (facts.c) ---- */

/* False for text, raw bytes and structs. A time counts as a number. */
bool cli_is_number(const zarr_dtype *type);
/* One element in native byte order: its value; of several components, such as those of
 * complex numbers, the root of the sum of their squares. */
double cli_number(const zarr_dtype *type, const void *element);

#endif
