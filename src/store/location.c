/*
 * store/location.c - takes a text that a person wrote apart: store, node, selection.
 * zarr_location_parse() has the grammar.
 *
 * Without a ":/" between store and node, the root of the store is searched: from the
 * deepest folder on the path that is a node, up to the topmost node of the unbroken chain
 * above it. Only names of documents are looked for; nothing is read. In a URL such as
 * "https://host/run.zarr/temp" the text alone decides: no request is sent.
 * Thread class: plain functions.
 */
#include "store/registry_int.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>

/* A location and its texts, in one block. */
struct location_block {
    zarr_location location; /* first: the caller has its address */
    const zarr_allocator *alloc;
    zarr_context *ctx;
    void (*ctx_unref)(zarr_context *ctx);
    char *shown;  /* NULL: the URL is shown as it is */
    size_t bytes; /* of text */
    char text[];
};

struct locating {
    const struct zr_store_registry *registry;
    struct zr_str name; /* of the file that is looked for */
};

/* A part of the text that names a folder. n 0: none. */
struct folder {
    const char *at;
    size_t n;
};

/* Whether there is a file: two texts after each other are its name. The system knows no
 * name of PATH_MAX bytes, so a long text does not cost a copy for each of its parts. */
static bool location_exists(struct locating *l, const char *a, size_t n, const char *b)
{
    struct stat st;

    if (n >= PATH_MAX || strnlen(b, PATH_MAX - n) == PATH_MAX - n)
        return false;
    zr_str_clear(&l->name);
    zr_str_append(&l->name, a, n);
    zr_str_puts(&l->name, b);
    return !l->name.failed && stat(zr_str_text(&l->name), &st) == 0;
}

static bool location_is_file(struct locating *l, const char *path, size_t n)
{
    struct stat st;

    return location_exists(l, path, n, "") && stat(zr_str_text(&l->name), &st) == 0 &&
           S_ISREG(st.st_mode);
}

static bool location_is_node(struct locating *l, struct folder f)
{
    static const char *const documents[] = {"/" ZR_DOC_V3, "/" ZR_DOC_GROUP,
                                            "/" ZR_DOC_ARRAY, "/" ZR_DOC_CONSOLIDATED};

    for (size_t i = 0; i < ZR_COUNT(documents); i++)
        if (location_exists(l, f.at, f.n, documents[i]))
            return true;
    return false;
}

static size_t location_scheme_bytes(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789+-");
}

/* As zr_url_of_files(). In "file:/a" a file called "file" comes first. */
static size_t location_files(struct locating *l, const char *text)
{
    const size_t n = zr_url_of_files(text);

    return n > 0 && text[n - 1] == ':' && location_exists(l, text, n - 1, "") ? 0 : n;
}

/* The colon after the scheme, if text begins with the scheme of a plug-in's store; else
 * NULL. A file of that name comes first, unless "//" follows. */
static const char *location_plugin(struct locating *l, const char *text)
{
    const size_t n = strcspn(text, ":/");

    if (text[n] != ':' || !zr_store_registry_is_foreign(l->registry, text, n) ||
        (strncmp(text + n, "://", 3) != 0 && location_exists(l, text, n, "")))
        return NULL;
    return text + n;
}

static bool location_has_scheme(struct locating *l, const char *text)
{
    const size_t n = location_scheme_bytes(text);

    return n > 1 && text[n] == ':' &&
           (strncmp(text + n, "://", 3) == 0 || !location_exists(l, text, 0, text));
}

/* The last ":/" that separates a store from a node, or NULL. scheme: the colon of a
 * scheme, which does not count. In "x.zarr://a" the first part cannot be a scheme. */
static char *location_split(struct locating *l, char *text, const char *scheme)
{
    const size_t letters = location_scheme_bytes(text);
    char *found = NULL;

    for (size_t n = 1; *text && text[n]; n++)
        if (text[n] == ':' && text[n + 1] == '/' && text + n != scheme &&
            (text[n + 2] != '/' || (letters < n && location_exists(l, text, n, ""))))
            found = text + n;
    return found;
}

/* Cuts a selection, "[...]" with balanced brackets, off the end of text, and returns it
 * without the brackets. NULL: there is none. */
static char *location_cut_selection(char *text)
{
    const size_t n = strlen(text);
    size_t at = n;
    int depth = 0;

    if (n < 2 || text[n - 1] != ']')
        return NULL;
    do {
        at--;
        depth += text[at] == ']' ? 1 : text[at] == '[' ? -1 : 0;
    } while (at > 0 && depth > 0);
    if (depth > 0 || at == 0)
        return NULL;
    text[n - 1] = text[at] = '\0';
    return text + at + 1;
}

/* The same, unless a file has the whole text as its name. */
static char *location_selection(struct locating *l, char *text, const char *split)
{
    const size_t head = split ? (size_t)(split - text) : 0;

    if (location_exists(l, text, head, split ? split + 1 : text))
        return NULL;
    return location_cut_selection(text);
}

/* The folder that contains f. None for "/", ".", ".." and "a/..". */
static struct folder location_parent(struct folder f)
{
    size_t name = f.n, end;

    while (name > 0 && f.at[name - 1] != '/')
        name--;
    if (name == f.n || (f.n - name <= 2 && f.at[name] == '.' && f.at[f.n - 1] == '.'))
        return (struct folder){NULL, 0};
    if (name == 0)
        return (struct folder){".", 1};
    for (end = name - 1; end > 0 && f.at[end - 1] == '/';)
        end--;
    return (struct folder){f.at, ZR_MAX(end, (size_t)1)};
}

/* The root of a new hierarchy: the first folder called *.zarr, else the path itself. */
static struct folder location_new_root(const char *path)
{
    for (size_t n = 0; path[n]; n++)
        if (path[n] == '.' && strncmp(path + n, ".zarr", 5) == 0 &&
            (path[n + 5] == '/' || path[n + 5] == '\0'))
            return (struct folder){path, n + 5};
    return (struct folder){path, strlen(path)};
}

/* The first part of the path after "zip:" that is a file; else all of it. */
static struct folder location_zip_root(struct locating *l, const char *text)
{
    const size_t colon = strlen(ZR_STORE_ZIP ":");
    const size_t scheme = colon + (zr_starts_with(text + colon, "//") ? 2 : 0);

    for (size_t n = scheme + strcspn(text + scheme, "/"); text[n] != '\0';
         n += 1 + strcspn(text + n + 1, "/"))
        if (n > scheme && location_is_file(l, text + scheme, n - scheme))
            return (struct folder){text, n};
    return (struct folder){text, strlen(text)};
}

static struct folder location_root(struct locating *l, const char *path)
{
    struct folder at = {path, strlen(path)}, up;

    while (at.n > 0 && !location_is_node(l, at))
        at = location_parent(at);
    if (at.n == 0)
        return location_new_root(path);
    for (up = location_parent(at); up.n > 0 && location_is_node(l, up);
         up = location_parent(at))
        at = up;
    return at;
}

size_t zr_path_find_root(const zarr_allocator *alloc, const char *path)
{
    struct locating l = {.registry = NULL};
    size_t n;

    zr_str_init(&l.name, alloc);
    n = location_root(&l, path).n;
    n = l.name.failed ? 0 : n;
    zr_str_deinit(&l.name);
    return n;
}

/* The part of path after its root. */
static const char *location_rest(const char *path, struct folder root)
{
    if (root.n == 1 && *root.at == '.' && strncmp(path, "./", 2) != 0)
        return strcmp(path, ".") == 0 ? "" : path;
    path += root.n;
    return path + strspn(path, "/");
}

/* ---- URLs ---- */

/* A URL that is split: its root is the text up to `root_end` and the query. */
struct url_parts {
    char *root_end, *query; /* query: at the '?', or at the end */
    const char *node;
    size_t node_bytes;
    bool is_escaped; /* the node has the escapes of a URL */
};

/* The end of the first part of a path that names a hierarchy; NULL: none does. */
static char *url_find_root(char *path, const char *end)
{
    static const char *const suffixes[] = {".zarr", ".zip", ".ozx"};

    for (char *part = path; part < end;) {
        const char *slash = memchr(part + 1, '/', (size_t)(end - part - 1));
        const size_t n = (size_t)((slash ? slash : end) - part);

        for (size_t i = 0; i < ZR_COUNT(suffixes); i++) {
            const size_t m = strlen(suffixes[i]);

            if (n > m + 1 && memcmp(part + n - m, suffixes[i], m) == 0)
                return part + n;
        }
        part += n;
    }
    return NULL;
}

static struct url_parts url_split(char *host)
{
    char *const path = host + strcspn(host, "/?");
    struct url_parts p = {.query = path + strcspn(path, "?")};
    char *colon = NULL, *end;

    /* memchr(): under asan each strchr() would read the rest of the text */
    end = host + strlen(host);
    for (char *at = host; (at = memchr(at, ':', (size_t)(end - at))); at++)
        if (at[1] == '/' && at[2] != '/')
            colon = at;
    if (colon) { /* the query may be before or after the node */
        const bool is_before = p.query < colon;

        p.node = colon + 1;
        p.node_bytes = is_before ? strlen(colon + 1) : (size_t)(p.query - p.node);
        p.root_end = is_before ? p.query : colon;
        if (is_before)
            *colon = '\0';
        return p;
    }
    p.root_end = url_find_root(path, p.query);
    for (end = p.query; !p.root_end && end > path + 1 && end[-1] == '/';)
        end--;
    if (!p.root_end)
        p.root_end = end;
    p.node = p.root_end;
    p.node_bytes = (size_t)(p.query - p.node);
    p.is_escaped = true;
    return p;
}

/* The length of what stands before the host in a text such as "https://h/x" and
 * "zip:https://h/x". 0: it is no URL of a server or a plug-in. */
static size_t url_head(const char *text)
{
    const size_t skip = zr_starts_with(text, ZR_STORE_ZIP ":") &&
                                !zr_starts_with(text, ZR_STORE_ZIP "://")
                            ? strlen(ZR_STORE_ZIP ":")
                            : 0;
    const size_t n = zr_url_of_server(text + skip);

    return n > 0 ? skip + n : 0;
}

static zarr_status location_fill_url(struct locating *l, char *text, size_t head,
                                     zarr_location *out, char *url, zarr_error *err)
{
    char *const host = text + head, *const path = host + strcspn(host, "/?");
    struct url_parts p;

    out->selection = location_cut_selection(path); /* not the brackets of an address */
    p = url_split(host);
    while (p.node_bytes > 0 && *p.node == '/') {
        p.node++;
        p.node_bytes--;
    }
    while (p.node_bytes > 0 && p.node[p.node_bytes - 1] == '/')
        p.node_bytes--;
    zr_str_clear(&l->name);
    if (!p.is_escaped)
        zr_str_append(&l->name, p.node, p.node_bytes);
    else if (!zr_url_decode(&l->name, p.node, p.node_bytes))
        return zr_fail(err, ZARR_ERR_INVALID,
                       "the URL has a malformed escape in its path");
    ZR_CHECK(zr_str_status(&l->name, err));
    memcpy(url, text, (size_t)(p.root_end - text));
    url += p.root_end - text;
    memcpy(url, p.query, strlen(p.query) + 1);
    memcpy(text, zr_str_text(&l->name), l->name.bytes + 1);
    out->path = text;
    return ZARR_OK;
}

/* ---- all together ---- */

/* Finds the root on the path when no ":/" separates it from a node. */
static struct folder location_search(struct locating *l, const char *start,
                                     const char *scheme, zarr_location *out)
{
    const bool is_zip = scheme && zr_starts_with(start, ZR_STORE_ZIP ":");
    struct folder root = {start, strlen(start)};
    const size_t archive = out->is_local ? zr_path_find_archive(start) : 0;

    if (archive > 0)
        root.n = archive;
    else if (out->is_local)
        root = location_root(l, start);
    else if (is_zip)
        root = location_zip_root(l, start);
    out->path = out->is_local || is_zip ? location_rest(start, root) : "";
    return root;
}

static void location_fill(struct locating *l, char *start, zarr_location *out, char *url)
{
    const char *const scheme = location_plugin(l, start);
    struct folder root;
    char *split;
    size_t n;

    start += location_files(l, start);
    split = location_split(l, start, scheme);
    out->selection = location_selection(l, start, split);
    for (n = strlen(start); n > 1 && start[n - 1] == '/';)
        start[--n] = '\0';
    if (split && split >= start + n) /* inside the selection */
        split = NULL;
    if (split)
        *split = '\0';
    out->is_local = !location_plugin(l, start) && !location_has_scheme(l, start);
    root = (struct folder){start, strlen(start)};
    if (split)
        out->path = split + 1 + strspn(split + 1, "/");
    else
        root = location_search(l, start, scheme, out);
    memcpy(url, root.at, root.n);
    url[root.n] = '\0';
    out->is_local = out->is_local && !zr_path_is_archive(url);
}

static void location_free(struct location_block *b)
{
    if (!b)
        return;
    zr_wipe(b->text, b->bytes); /* a URL may have a password */
    zr_free(b->alloc, b->shown);
    zr_free(b->alloc, b);
}

zarr_status zr_location_parse(zarr_location **out, const struct zr_store_registry *r,
                              const struct zr_store_env *env, const char *text,
                              zarr_error *err)
{
    struct locating l = {.registry = r};
    struct location_block *b = NULL;
    size_t n, bytes, head;
    zarr_status st = ZARR_OK;

    *out = NULL;
    if (!text || !*text)
        return zr_fail(err, ZARR_ERR_INVALID, "no location");
    n = strlen(text) + 2;
    zr_str_init(&l.name, env->alloc);
    if (zr_mul(n, 2, &bytes) && zr_add(bytes, sizeof *b, &bytes))
        b = zr_calloc(env->alloc, 1, bytes);
    if (!b)
        ZR_FAIL_MEMORY(err, n);
    *b = (struct location_block){.alloc = env->alloc, .bytes = 2 * n};
    b->location.struct_size = sizeof b->location;
    memcpy(b->text, text, n - 1);
    head = url_head(b->text);
    b->location.url = b->text + n;
    if (head > 0)
        ZR_TRY(location_fill_url(&l, b->text, head, &b->location, b->text + n, err));
    else
        location_fill(&l, b->text, &b->location, b->text + n);
    ZR_TRY(zr_str_status(&l.name, err));
    ZR_TRY(zr_store_show_url(&b->shown, env->alloc, b->location.url, err));
    b->location.shown = b->shown ? b->shown : b->location.url;
    if (env->ctx && env->ctx_ref)
        env->ctx_ref(env->ctx);
    b->ctx = env->ctx;
    b->ctx_unref = env->ctx_unref;
    *out = &b->location;
    b = NULL;
out:
    location_free(b);
    zr_str_deinit(&l.name);
    return st;
}

void zarr_location_free(zarr_location *location)
{
    struct location_block *b = (struct location_block *)(void *)location;
    void (*unref)(zarr_context * ctx);
    zarr_context *ctx;

    if (!b)
        return;
    unref = b->ctx_unref;
    ctx = b->ctx;
    location_free(b);
    if (ctx && unref)
        unref(ctx);
}
