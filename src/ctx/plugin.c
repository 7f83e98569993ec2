/*
 * ctx/plugin.c - loads plug-ins. It maps a file that the caller names, finds its one
 * symbol, checks its ABI number and its table, and calls its load(), which registers
 * through the host's table (host.c). A plug-in stays loaded as long as the context. When
 * every registry is empty, plug-ins are unloaded in reverse order. Their files stay
 * mapped until the process ends: a thread that a plug-in has given a destructor may end
 * later than the context. If a load() fails half-way, its registrations remain. No
 * directories are searched: the caller gives a path, and ZARRC_PLUGINS has absolute
 * paths only.
 * Thread class: shared; the loader's lock is held while a plug-in is loaded.
 */
#include "ctx/ctx_int.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#    define PLUGIN_STAYS    /* the leak checker of gcc 12 fails beside threads that are  \
                               left */
#    include <link.h>
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#ifdef __APPLE__
#    define PLUGIN_SUFFIX ".dylib"
#else
#    define PLUGIN_SUFFIX ".so"
#endif

enum {
    PLUGIN_FOLDER_MAX = 1024 /* files of a folder */
};

struct zr_plugin {
    char *path; /* absolute, owned */
    void *handle;
    zarr_plugin info;
    void *self;
    bool loaded;  /* load() returned ZARR_OK, so unload() must be called */
    bool refused; /* it does not have an option that it was given */
};

/* Threads of the pool call other libraries, which may have destructors for when a thread
 * ends. So the library stays mapped, as the files of plug-ins do, and its threads need
 * not end before the process. A program stays anyway. */
static void stay_mapped(void)
{
#ifdef PLUGIN_STAYS
    static const char here;
    struct link_map *map = NULL;
    Dl_info info;

    if (dladdr1(&here, &info, (void **)&map, RTLD_DL_LINKMAP) != 0 &&
        (!*map->l_name || dlopen(map->l_name, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE)))
        zr_pool_stay();
#endif
}

void zr_plugins_init(struct zr_plugins *p, const zarr_allocator *alloc)
{
    static zr_once once = ZR_ONCE_INIT;

    zr_call_once(&once, stay_mapped);
    *p = (struct zr_plugins){0};
    zr_json_doc_init(&p->options.doc, alloc);
    zr_mutex_init(&p->mutex);
    zr_mutex_init(&p->list_mutex);
    p->fork = (struct zr_fork_hook){.mutex = &p->list_mutex};
    zr_fork_hook_add(&p->fork);
    atomic_init(&p->loading, NULL);
}

static void plugin_free(const zarr_allocator *alloc, struct zr_plugin *p)
{
    if (p->loaded && p->info.unload)
        p->info.unload(p->self);
    if (p->handle)
        (void)dlclose(p->handle); /* RTLD_NODELETE keeps the file mapped */
    zr_free(alloc, p->path);
    zr_free(alloc, p);
}

const char *zr_plugin_name(const struct zr_plugin *p)
{
    return p->info.name;
}

void zr_plugins_deinit(struct zr_plugins *p, const zarr_allocator *alloc)
{
    while (p->n > 0)
        plugin_free(alloc, p->item[--p->n]);
    zr_free(alloc, p->item);
    zr_plugin_options_deinit(p, alloc);
    zr_fork_hook_remove(&p->fork);
    zr_mutex_deinit(&p->list_mutex);
    zr_mutex_deinit(&p->mutex);
}

/* ---- one file -------------------------------------------------------------------- */

static zarr_status plugin_symbol(struct zr_plugin *p, const zarr_plugin **out,
                                 zarr_error *err)
{
    void *symbol = dlsym(p->handle, "zarr_plugin_v1");
    zarr_plugin_fn fn = NULL;

    if (!symbol && dlsym(p->handle, "zarr_plugin_v2"))
        return zr_fail(err, ZARR_ERR_ABI,
                       "the plug-in is made for a newer library: it exports "
                       "zarr_plugin_v2, this library knows zarr_plugin_v1");
    if (!symbol)
        return zr_fail(err, ZARR_ERR_ABI,
                       "the file is not a plug-in: it does not export zarr_plugin_v1");
    memcpy(&fn, &symbol,
           sizeof fn); /* C has no cast between object and function pointers */
    *out = fn();
    if (!*out)
        return zr_fail(err, ZARR_ERR_ABI, "zarr_plugin_v1() gives no table");
    return ZARR_OK;
}

static bool plugin_is_plain(const char *text)
{
    return !text || zr_is_plain_line(text);
}

static zarr_status plugin_check(struct zr_plugin *p, const zarr_plugin *table,
                                zarr_error *err)
{
    zarr_status st = ZARR_OK;

    if (table->abi != ZARR_PLUGIN_ABI)
        return zr_fail(err, ZARR_ERR_ABI,
                       "the plug-in is made for plug-in ABI %" PRIu32
                       ", this library has ABI %d",
                       table->abi, ZARR_PLUGIN_ABI);
    ZR_TRY(zr_struct_read(&p->info, sizeof p->info, ZR_SIZE_THROUGH(zarr_plugin, unload),
                          table, ZR_TAIL_IGNORE, "zarr_plugin", err));
    if (!p->info.name || !*p->info.name || !p->info.load)
        st = zr_fail(err, ZARR_ERR_INVALID, "the plug-in's table lacks its name or load");
    else if ((st = zr_check_name("plug-in", p->info.name, err)) != ZARR_OK)
        goto out;
    else if (!plugin_is_plain(p->info.version) || !plugin_is_plain(p->info.license))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "plug-in \"%s\": version and license are printable ASCII",
                     p->info.name);
    else if (zr_streq(p->info.name, ZR_CTX_CORE))
        st = zr_fail(err, ZARR_ERR_EXISTS,
                     "plug-in \"%s\": the name is the library's own", ZR_CTX_CORE);
out:
    return st;
}

static zarr_status plugin_unique(const struct zr_plugins *all, const struct zr_plugin *p,
                                 zarr_error *err)
{
    for (size_t i = 0; i < all->n; i++)
        if (zr_streq(all->item[i]->info.name, p->info.name))
            return zr_fail(err, ZARR_ERR_EXISTS,
                           "plug-in \"%s\" is loaded already, from %s", p->info.name,
                           all->item[i]->path);
    return ZARR_OK;
}

/* Calls load(); *kept: it registered something and must stay mapped. */
static zarr_status plugin_call(zarr_context *ctx, struct zr_plugin *p, bool *kept,
                               zarr_error *err)
{
    zarr_error why = {0};
    zarr_status st = ZARR_OK;
    size_t before = 0;

    zr_mutex_lock(&ctx->locked.mutex);
    before = ctx->locked.n_rows;
    zr_mutex_unlock(&ctx->locked.mutex);
    ZR_TRY(zr_plugin_options_begin(ctx, p->info.name, err));
    atomic_store(&ctx->plugins.loading, p->info.name);
    st = p->info.load(&zr_host, ctx, &p->self, &why);
    atomic_store(&ctx->plugins.loading, NULL);
    zr_mutex_lock(&ctx->locked.mutex);
    *kept = ctx->locked.n_rows > before;
    zr_mutex_unlock(&ctx->locked.mutex);
    p->loaded = st == ZARR_OK;
    if (st == ZARR_OK) {
        st = zr_plugin_options_end(ctx, p->info.name, err);
        p->refused = st != ZARR_OK;
        return st;
    }
    why.message[sizeof why.message - 1] = '\0';
    return zr_fail(err, st < 0 ? st : ZARR_ERR_INVALID, "plug-in \"%s\" failed: %s",
                   p->info.name, why.message[0] ? why.message : "it does not say why");
out:
    return st;
}

static zarr_status plugin_open(zarr_context *ctx, struct zr_plugin *p, bool *kept,
                               zarr_error *err)
{
    const zarr_plugin *table = NULL;

    p->handle = dlopen(p->path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!p->handle) {
        const char *why = dlerror();

        return zr_fail(err, ZARR_ERR_IO, "the plug-in cannot be loaded: %s",
                       why ? why : "no reason given");
    }
    ZR_CHECK(plugin_symbol(p, &table, err));
    ZR_CHECK(plugin_check(p, table, err));
    ZR_CHECK(plugin_unique(&ctx->plugins, p, err));
    return plugin_call(ctx, p, kept, err);
}

static zarr_status load_locked(zarr_context *ctx, const char *path, zarr_error *err)
{
    struct zr_plugins *all = &ctx->plugins;
    struct zr_plugin *p = NULL;
    zarr_status st = ZARR_OK;
    bool kept = false;

    for (size_t i = 0; i < all->n; i++)
        if (zr_streq(all->item[i]->path, path))
            return all->item[i]->loaded && !all->item[i]->refused
                       ? ZARR_OK
                       : zr_fail(err, ZARR_ERR_INVALID, "loading it has failed before");
    zr_mutex_lock(&all->list_mutex);
    st = zr_grow(ctx->alloc, &all->item, &all->cap, all->n + 1,
                 sizeof(struct zr_plugin *), err);
    zr_mutex_unlock(&all->list_mutex);
    if (st != ZARR_OK)
        goto out;
    p = zr_calloc(ctx->alloc, 1, sizeof *p);
    if (!p)
        ZR_FAIL_MEMORY(err, sizeof *p);
    p->path = zr_strdup(ctx->alloc, path);
    if (!p->path)
        ZR_FAIL_MEMORY(err, strlen(path));
    st = plugin_open(ctx, p, &kept, err);
    if (st == ZARR_OK || kept) {
        zr_mutex_lock(&all->list_mutex);
        all->item[all->n++] = p;
        zr_mutex_unlock(&all->list_mutex);
        p = NULL; /* moved */
    }
out:
    if (p)
        plugin_free(ctx->alloc, p);
    return st;
}

zarr_status zarr_context_load(zarr_context *ctx, const char *path, zarr_error *err)
{
    char whole[PATH_MAX];
    zarr_status st = ZARR_OK;

    ZR_NEED(ctx, err);
    if (!path || !*path)
        return zr_fail(err, ZARR_ERR_INVALID, "no plug-in is named");
    if (!realpath(path, whole))
        return zr_fail_os(
            err, errno == ENOENT || errno == ENOTDIR ? ZARR_ERR_NOT_FOUND : ZARR_ERR_IO,
            errno, "plug-in %s", path);
    zr_mutex_lock(&ctx->plugins.mutex);
    if (atomic_load(&ctx->sealed))
        st = zr_fail(err, ZARR_ERR_INVALID,
                     "the context is sealed: load before the first store is opened, or "
                     "tried");
    else
        st = load_locked(ctx, whole, err);
    zr_mutex_unlock(&ctx->plugins.mutex);
    return zr_prefix(err, st, "%s", path);
}

/* ---- ZARRC_PLUGINS --------------------------------------------------- */

static int compare_files(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Collects the paths of the files in a folder that are named as shared libraries, by
 * name. */
static zarr_status folder_files(const char *folder, struct zr_arena *texts, char ***out,
                                size_t *n, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    const size_t suffix = strlen(PLUGIN_SUFFIX);
    DIR *dir = opendir(folder);

    if (!dir)
        return zr_fail_os(err, ZARR_ERR_IO, errno, "ZARRC_PLUGINS: %s", folder);
    *out = zr_arena_alloc(texts, PLUGIN_FOLDER_MAX * sizeof **out);
    if (!*out)
        ZR_FAIL_MEMORY(err, PLUGIN_FOLDER_MAX * sizeof **out);
    for (const struct dirent *e; (e = readdir(dir));) {
        const size_t bytes = strlen(e->d_name), room = strlen(folder) + bytes + 2;

        if (bytes <= suffix || e->d_name[0] == '.' ||
            strcmp(e->d_name + bytes - suffix, PLUGIN_SUFFIX) != 0)
            continue;
        if (*n == PLUGIN_FOLDER_MAX)
            ZR_FAIL(err, ZARR_ERR_LIMIT, "ZARRC_PLUGINS: %s has more than %d plug-ins",
                    folder, PLUGIN_FOLDER_MAX);
        (*out)[*n] = zr_arena_alloc(texts, room);
        if (!(*out)[*n])
            ZR_FAIL_MEMORY(err, room);
        memcpy((*out)[*n], folder, strlen(folder));
        (*out)[*n][strlen(folder)] = '/';
        memcpy((*out)[*n] + strlen(folder) + 1, e->d_name, bytes + 1);
        ++*n;
    }
    qsort(*out, *n, sizeof **out, compare_files);
out:
    (void)closedir(dir);
    return st;
}

static zarr_status load_part(zarr_context *ctx, struct zr_arena *texts, const char *part,
                             zarr_error *err)
{
    struct stat what;
    char **file = NULL;
    size_t n = 0;

    if (part[0] != '/')
        return zr_fail(err, ZARR_ERR_INVALID,
                       "ZARRC_PLUGINS: \"%s\" is not an absolute path", part);
    if (stat(part, &what) != 0)
        return zr_fail_os(
            err, errno == ENOENT || errno == ENOTDIR ? ZARR_ERR_NOT_FOUND : ZARR_ERR_IO,
            errno, "ZARRC_PLUGINS: %s", part);
    if (!S_ISDIR(what.st_mode))
        return zr_prefix(err, zarr_context_load(ctx, part, err), "ZARRC_PLUGINS");
    ZR_CHECK(folder_files(part, texts, &file, &n, err));
    for (size_t i = 0; i < n; i++)
        ZR_CHECK(zr_prefix(err, zarr_context_load(ctx, file[i], err), "ZARRC_PLUGINS"));
    return ZARR_OK;
}

zarr_status zr_plugins_load_path(zarr_context *ctx, const char *list, zarr_error *err)
{
    zarr_status st = ZARR_OK;
    struct zr_arena texts;

    zr_arena_init(&texts, ctx->alloc);
    while (*list) {
        const size_t bytes = strcspn(list, ":");

        if (bytes > 0) {
            const char *part = zr_arena_strndup(&texts, list, bytes);

            if (!part)
                ZR_FAIL_MEMORY(err, bytes);
            ZR_TRY(load_part(ctx, &texts, part, err));
        }
        list += bytes + (list[bytes] == ':');
    }
out:
    zr_arena_deinit(&texts);
    return st;
}

bool zr_plugins_get(zarr_context *ctx, size_t i, const zarr_plugin **info,
                    const char **path)
{
    bool found = false;

    zr_mutex_lock(&ctx->plugins.list_mutex);
    found = i < ctx->plugins.n;
    if (found) {
        const struct zr_plugin *p =
            ctx->plugins.item[i]; /* stays as long as the context */

        *info = p->loaded && !p->refused ? &p->info : NULL;
        *path = p->path;
    }
    zr_mutex_unlock(&ctx->plugins.list_mutex);
    return found;
}
