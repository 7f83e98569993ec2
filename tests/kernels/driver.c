#include "driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* Only when a function of the library is missing, or none of its devices can be used. */
static const char *give_up(struct driver *d, const char *why)
{
    if (d->library)
        (void)dlclose(d->library);
    d->library = NULL;
    return why;
}

/* POSIX, not C, says that a function is at the address which dlsym() returns. */
static int find(const struct driver *d, const char *name, void *to)
{
    void *at = dlsym(d->library, name);

    memcpy(to, &at, sizeof at);
    return at != NULL;
}

const char *driver_open(struct driver *d)
{
    int n = 0;

    memset(d, 0, sizeof *d);
    d->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!d->library)
        return give_up(d, "there is no libcuda.so.1");
#define DRIVER_FIND(member, name, parameters)                                            \
    if (!find(d, name, &d->member))                                                      \
        return give_up(d, "libcuda.so.1 has no " name);
    DRIVER_CALLS(DRIVER_FIND)
#undef DRIVER_FIND
    if (d->init(0) || d->device_count(&n) || n < 1)
        return give_up(d, "libcuda.so.1 finds no device");
    if (d->device_get(&d->device, 0) || d->context_retain(&d->context, d->device) ||
        d->context_use(d->context))
        return give_up(d, "the first device cannot be used");
    return NULL;
}

void driver_close(struct driver *d)
{
    (void)d->context_use(NULL);
    (void)d->context_release(d->device);
    (void)give_up(d, NULL);
}

/* The bytes of a file, and a 0; NULL if it cannot be read. */
static char *file_bytes(const char *name)
{
    FILE *f = fopen(name, "rb");
    size_t n = 0, room = 1 << 16;
    char *bytes = f ? malloc(room) : NULL;

    while (bytes) {
        n += fread(bytes + n, 1, room - 1 - n, f);
        if (n < room - 1)
            break;
        room *= 2;
        char *more = realloc(bytes, room);
        if (!more)
            free(bytes);
        bytes = more;
    }
    if (bytes)
        bytes[n] = 0;
    if (f)
        (void)fclose(f);
    return bytes;
}

static cu_result load(struct driver *d, cu_module *m, const void *image)
{
    enum {
        ERRORS = 5, /* CU_JIT_ERROR_LOG_BUFFER */
        ERRORS_ROOM = 6
    };
    char log[4096] = "";
    int options[] = {ERRORS, ERRORS_ROOM};
    void *values[] = {log, (void *)(uintptr_t)(sizeof log - 1)};
    const cu_result rc = d->module_load(m, image, 2, options, values);

    if (rc)
        (void)fprintf(stderr, "CUDA: %s\n%s\n", driver_error(d, rc), log);
    return rc;
}

cu_result driver_kernels(struct driver *d, cu_module *m)
{
    const char *name = getenv("KERNELS_IMAGE");
    char *bytes = name ? file_bytes(name) : NULL;
    cu_result rc = -1;

    if (name && !bytes)
        (void)fprintf(stderr, "cannot read %s\n", name);
    else if (!name && kernels_ptx_bytes == 0)
        (void)fprintf(stderr, "the build has no PTX\n");
    else
        rc = load(d, m, name ? (const void *)bytes : kernels_ptx);
    free(bytes);
    return rc;
}

const char *driver_error(const struct driver *d, cu_result rc)
{
    const char *name = NULL;

    return d->error_name(rc, &name) == 0 && name ? name : "an unknown error";
}
