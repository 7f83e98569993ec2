/*
 * fakecuda/modules.c - modules of kernels, which are the host's twins by name, and their
 * launches, which are work on a stream.
 */
#include "fakecuda.h"

#include "twins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARAMETERS_MAX = 12
};

struct CUfunc_st {
    struct CUfunc_st *next;
    char name[64];
    int n;
    int wide[PARAMETERS_MAX]; /* 8 bytes, else 4 */
};
struct CUmod_st {
    struct CUmod_st *next;
    const char *ptx;
    CUcontext context;
    CUfunction functions;
};

static CUmodule modules;

/* ---- modules -------------------- */

static int is_fatbin; /* the last module */

int fakecuda_fatbin(void)
{
    return is_fatbin;
}

static CUresult module_open(CUmodule *out, const char *image)
{
    const int fatbin = strncmp(image, FAKECUDA_MAGIC, strlen(FAKECUDA_MAGIC)) == 0;

    if (fatbin && !fake_setting("FAKECUDA_FATBIN", 1))
        return 209; /* no code for this device */
    if (!strstr(image, ".entry"))
        return 200; /* an invalid image */
    is_fatbin = fatbin;
    *out = calloc(1, sizeof **out);
    if (!*out)
        fake_fault("no memory");
    **out = (struct CUmod_st){.next = modules, .ptx = image, .context = fake_current()};
    modules = *out;
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned n,
                            CUjit_option *options, void **values)
{
    (void)n, (void)options, (void)values;
    FAKE_CALL("cuModuleLoadData", NULL, module_open(out, image));
}

static CUresult module_close(CUmodule m)
{
    CUmodule *at = &modules;

    while (*at && *at != m)
        at = &(*at)->next;
    if (!*at)
        fake_fault("a module is unloaded twice");
    *at = m->next;
    for (CUfunction f = m->functions, next; f; f = next) {
        next = f->next;
        free(f);
    }
    free(m);
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule m)
{
    FAKE_CALL("cuModuleUnload", NULL, module_close(m));
}

/* Reads the parameters of an entry: ".entry name(.param .u64 name_param_0, ...)". */
static CUresult function_open(CUfunction *out, CUmodule m, const char *name)
{
    char entry[100];
    const char *at, *end;
    CUfunction f = calloc(1, sizeof *f);

    if (!f)
        fake_fault("no memory");
    f->next = m->functions;
    m->functions = f;
    (void)snprintf(f->name, sizeof f->name, "%s", name);
    (void)snprintf(entry, sizeof entry, ".entry %s(", name);
    at = strstr(m->ptx, entry);
    if (!at)
        return 500; /* not found */
    end = strchr(at, ')');
    while (f->n < PARAMETERS_MAX && (at = strstr(at, ".param .")) && at < end) {
        at += strlen(".param .");
        f->wide[f->n++] = strncmp(at + 1, "64", 2) == 0;
    }
    *out = f;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule m, const char *name)
{
    FAKE_CALL("cuModuleGetFunction", NULL, function_open(out, m, name));
}

/* ---- launches -------------------- */

struct launch {
    struct work work;
    CUfunction f;
    uint64_t items;
    struct kernels_argument a[PARAMETERS_MAX];
};

static void launch_run(struct work *w)
{
    const struct launch *l = (struct launch *)w;

    if (!kernels_twin(l->f->name, l->items, l->a))
        fake_fault("no kernel has the name %s", l->f->name);
}

/* Each number may be an address, so it gets both forms. Address 0 becomes where the
 * driver's view of all device memory is. */
static CUresult launch_queue(CUfunction f, uint64_t items, unsigned group, CUstream of,
                             void **arguments)
{
    CUstream s = fake_stream(of);
    struct launch *l = calloc(1, sizeof *l);

    if (!l)
        fake_fault("no memory");
    if (!s || items == 0) {
        free(l);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake_stream_context(s) != fake_current())
        fake_fault("a launch on a stream of another context");
    if (group != 32 &&
        (strcmp(f->name, "k_decode") == 0 || strcmp(f->name, "k_encode") == 0))
        fake_fault("a group of %s is not a warp", f->name);
    l->work.run = launch_run;
    l->f = f;
    l->items = items;
    for (int i = 0; i < f->n; i++) {
        memcpy(&l->a[i].number, arguments[i], f->wide[i] ? 8 : 4);
        /* NOLINTNEXTLINE(performance-no-int-to-ptr) */
        l->a[i].bytes = (void *)((uintptr_t)l->a[i].number + fake_shift());
    }
    fake_queue(s, &l->work);
    return CUDA_SUCCESS;
}

/* NOLINT(function-size): a function of CUDA */
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                        unsigned by, unsigned bz, unsigned shared_bytes, CUstream s,
                        void **arguments, void **extra)
{
    (void)shared_bytes;
    (void)extra;
    FAKE_CALL("cuLaunchKernel", s,
              (uint64_t)gy * gz * by * bz == 1 && bx <= 1024 && gx <= INT32_MAX
                  ? launch_queue(f, (uint64_t)gx * bx, bx, s, arguments)
                  : CUDA_ERROR_INVALID_VALUE);
}
