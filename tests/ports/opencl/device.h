/*
 * ports/opencl/device.h - what the files of the plug-in share: the OpenCL device, and
 * lanes. A lane is a queue with its own kernels, because the arguments of a cl_kernel
 * belong to one thread.
 */
#ifndef PORT_DEVICE_H
#define PORT_DEVICE_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <zarrc/plugin/plugin.h>

#include "port/port.h"

struct device;

/* Buffers of descriptions that were made for a call. */
struct staged {
    struct port_block block;
    struct staged *next;
};
struct lane {
    struct port_lane port; /* first */
    struct device *device;
    cl_command_queue queue;
    cl_kernel kernel[PORT_N_KERNELS];
    struct staged *staged;
    struct lane *next;
};

/* All contexts of the process share the device: tables of codecs have no `self` before
 * bind(). UNSUPPORTED if there is no OpenCL device. */
zarr_status device_open(struct device **out, zarr_error *err);
void device_close(void);
struct device *device_get(void);
cl_context device_cl(const struct device *d);
zarr_status device_describe(const struct device *d, zarr_device_facts *out,
                            zarr_error *err);
/* How often kernels were launched and bytes copied since the plug-in was loaded, and how
 * often the library waited. */
struct device_counts {
    unsigned long launches, copies, waits;
};
extern ZARR_PLUGIN_EXPORT struct device_counts opencl_counts;
void count(unsigned long *what);

zarr_status lane_open(struct device *d, struct lane **out, zarr_error *err);
void lane_close(struct lane *l);
/* A lane for one call, or for a stream. lane_end() waits for its work, also if `st` is a
 * failure, which it then returns. */
zarr_status lane_begin(struct device *d, struct lane **out, zarr_error *err);
zarr_status lane_end(struct lane *l, zarr_status st, zarr_error *err);
void lane_drop_staged(struct lane *l);

zarr_status cl_failed(zarr_error *err, const char *what, cl_int rc);

/* memory.c */
extern const zarr_memory_vtable opencl_memory;

#endif
