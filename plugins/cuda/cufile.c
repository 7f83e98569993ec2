/*
 * cuda/cufile.c - finds and loads libcufile, and opens its driver without the mode in
 * which it copies through host memory itself. Such a mode would say yes to any file
 * system. The library writes a log into the working directory unless the environment
 * names another file. So CUFILE_LOGFILE_PATH is /dev/null while the library is loaded and
 * opened, unless the user has set it. Thread class: shared.
 */
#include "cufile.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    PATH_BYTES = 4096
};

_Static_assert(sizeof(struct cufile_result) == 8, "cuFile's result");
_Static_assert(offsetof(struct cufile_properties, features) == 32, "cuFile's properties");

struct cufile_library cufile;

static struct {
    pthread_mutex_t mutex;
    int tried;
    atomic_int open;
    void *library;
    char why[300], place[PATH_BYTES];
} cf = {.mutex = PTHREAD_MUTEX_INITIALIZER};

void cufile_place(const char *path)
{
    pthread_mutex_lock(&cf.mutex);
    if (!cf.tried)
        (void)snprintf(cf.place, sizeof cf.place, "%s", path ? path : "");
    pthread_mutex_unlock(&cf.mutex);
}

static int find(void *out, const char *name, size_t bytes)
{
    void *symbol = dlsym(cf.library, name);

    memcpy(out, &symbol, bytes); /* C has no cast from objects to functions */
    return symbol != NULL;
}

static int load(void)
{
    const char *missing = NULL;

    if (!cf.library)
        cf.library =
            dlopen(*cf.place ? cf.place : "libcufile.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!cf.library) {
        const char *why = dlerror();

        (void)snprintf(cf.why, sizeof cf.why, "%s", why ? why : "no libcufile.so.0");
        return 0;
    }
#define FIND(result, name, arguments)                                                    \
    if (!find(&cufile.name, #name, sizeof cufile.name) && !missing)                      \
        missing = #name;
    CUFILE_CALLS(FIND)
#undef FIND
    if (missing)
        (void)snprintf(cf.why, sizeof cf.why, "libcufile.so.0 is too old: it has no %s",
                       missing);
    return missing == NULL;
}

static int note_failure(const char *what, struct cufile_result r)
{
    (void)snprintf(cf.why, sizeof cf.why, "%s: error %d of cuFile", what, r.code);
    return 0;
}

static int open_driver(void)
{
    struct cufile_properties p = {.nvfs = {.major = 0}};
    struct cufile_result r = cufile.cuFileSetParameterBool(CUFILE_ALLOW_COMPAT_MODE, 0);

    if (r.code != 0)
        return note_failure(
            "its compatibility mode cannot be switched off, perhaps because "
            "another part of the process uses cuFile",
            r);
    r = cufile.cuFileDriverOpen();
    if (r.code != 0)
        return note_failure("its driver does not open", r);
    r = cufile.cuFileDriverGetProperties(&p);
    if (r.code == 0 && p.nvfs.major > 0)
        return 1;
    (void)cufile.cuFileDriverClose_v2();
    if (r.code != 0)
        return note_failure("properties of its driver", r);
    (void)snprintf(cf.why, sizeof cf.why, "no nvidia-fs: the kernel's module is missing");
    return 0;
}

/* ---- the environment -------------------- */

/* setenv() may free the list in which another thread's getenv() looks just then. So the
 * variable is in a list of our own, which takes the place of the process's for a moment
 * and is never freed. */
struct own_list {
    struct own_list *next;
    size_t n; /* of the variables before ours */
    char *variable[];
};

static struct own_list *list_install(char *ours)
{
    static struct own_list *all; /* another thread may be in one at any time */
    struct own_list *l;
    size_t n = 0;

    while (environ && environ[n])
        n++;
    l = malloc(sizeof *l + (n + 2) * sizeof *l->variable);
    if (!l)
        return NULL;
    *l = (struct own_list){.next = all, .n = n};
    all = l;
    if (n > 0)
        memcpy(l->variable, environ, n * sizeof *l->variable);
    l->variable[n] = ours;
    l->variable[n + 1] = NULL;
    __atomic_store_n(&environ, l->variable, __ATOMIC_RELEASE);
    return l;
}

/* Where the application has changed a variable meanwhile, the list stays. */
static void list_remove(struct own_list *l, char **before)
{
    if (environ == l->variable && !l->variable[l->n + 1] &&
        memcmp(l->variable, before, l->n * sizeof *before) == 0)
        __atomic_store_n(&environ, before, __ATOMIC_RELEASE);
}

static void start_locked(void)
{
    static char silence[] = "CUFILE_LOGFILE_PATH=/dev/null";
    char **const before = environ;
    struct own_list *l = getenv("CUFILE_LOGFILE_PATH") ? NULL : list_install(silence);

    cf.tried = 1;
    if (load() && open_driver())
        atomic_store(&cf.open, 1);
    if (l)
        list_remove(l, before);
}

zarr_status cufile_start(zarr_error *err)
{
    zarr_status st = driver_start(err);

    if (st != ZARR_OK)
        return st;
    pthread_mutex_lock(&cf.mutex);
    if (!cf.tried)
        start_locked();
    if (!atomic_load(&cf.open))
        st = port_host->fail(err, ZARR_ERR_UNSUPPORTED, "GPUDirect Storage: %s", cf.why);
    pthread_mutex_unlock(&cf.mutex);
    return st;
}

/* The thread that held the lock is not in the child. */
void cufile_in_child(void)
{
    (void)pthread_mutex_init(&cf.mutex, NULL);
}

int cufile_runs(void)
{
    return atomic_load(&cf.open) && driver_runs();
}

void cufile_stop(void)
{
    pthread_mutex_lock(&cf.mutex);
    if (cufile_runs())
        (void)cufile.cuFileDriverClose_v2();
    atomic_store(&cf.open, 0);
    cf.tried = 0;
    pthread_mutex_unlock(&cf.mutex);
}
