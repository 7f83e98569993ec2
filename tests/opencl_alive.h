/*
 * opencl_alive.h - whether a process can look for OpenCL's devices here. PoCL aborts the
 * process if it does not find out about the machine's cores, as in a chroot without /sys.
 */
#ifndef OPENCL_ALIVE_H
#define OPENCL_ALIVE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPENCL_ABORTS                                                                    \
    "looking for OpenCL's devices ends the process here (is /sys mounted?)"

/* Looks for devices as any program does, without the library and the plug-in. */
static inline void opencl_look(void)
{
    typedef int32_t (*platforms_fn)(uint32_t n, void **out, uint32_t *found);
    typedef int32_t (*devices_fn)(void *platform, uint64_t type, uint32_t n, void **out,
                                  uint32_t *found);
    void *lib = dlopen("libOpenCL.so.1", RTLD_NOW), *platform = NULL, *device = NULL;
    void *symbols[2] = {lib ? dlsym(lib, "clGetPlatformIDs") : NULL,
                        lib ? dlsym(lib, "clGetDeviceIDs") : NULL};
    platforms_fn platforms;
    devices_fn devices;
    uint32_t n = 0;

    memcpy(&platforms, &symbols[0], sizeof platforms);
    memcpy(&devices, &symbols[1], sizeof devices);
    if (platforms && devices && platforms(1, &platform, &n) == 0 && n > 0)
        (void)devices(platform, UINT64_C(0xFFFFFFFF), 1, &device, &n);
}

/* A child tries. Call it before there are threads. */
static inline bool opencl_is_alive(void)
{
    int how = 0;
    const pid_t child = fork();

    if (child == 0) {
        opencl_look();
        _exit(0);
    }
    return child > 0 && waitpid(child, &how, 0) == child && WIFEXITED(how);
}

#endif
