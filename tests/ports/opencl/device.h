/*
 * ports/opencl/device.h - what the files of the plug-in share: the OpenCL device, and
 * lanes. A lane is a queue with its own kernels, because the arguments of a cl_kernel
 * belong to one thread. The library's streams are lanes; a call without a stream borrows
 * one and waits for its work.
 */
#ifndef PORT_DEVICE_H
#define PORT_DEVICE_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <zarrc/plugin/plugin.h>

#include "kernels.h"

struct device;

enum kernel {
    KERNEL_COPY_BOXES,
    KERNEL_FILL_BOXES,
    KERNEL_DIFFER,
    KERNEL_DECODE,
    KERNEL_UNSHUFFLE,
    N_KERNELS
};
struct lane {
    struct device *device;
    cl_command_queue queue;
    cl_kernel kernel[N_KERNELS];
    struct lane *next;
};

extern const zarr_host *host;

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

/* The lane of a call: that of `stream`, or if that is NULL one that call_end() waits
 * for. */
zarr_status call_begin(void *stream, struct lane **l, zarr_error *err);
zarr_status call_end(const void *stream, struct lane *l, zarr_status st, zarr_error *err);

/* One argument of a kernel. */
struct argument {
    size_t bytes;
    const void *value;
};
#define ARGUMENT(x) ((struct argument){sizeof x, &(x)})
zarr_status lane_launch(struct lane *l, enum kernel k, const struct argument *arguments,
                        cl_uint n, uint64_t work_items, zarr_error *err);
/* A buffer of bytes from the host. The caller releases it, also while work uses it. */
zarr_status device_buffer(const struct device *d, const void *from, uint64_t bytes,
                          cl_mem *out, zarr_error *err);
zarr_status cl_failed(zarr_error *err, const char *what, cl_int rc);

static inline int on_device(const zarr_mem *m)
{
    return m->device_type == ZARR_DEVICE_OPENCL;
}
static inline void *host_pointer(const zarr_mem *m)
{
    return (char *)m->handle + m->offset;
}

/* memory.c */
extern const zarr_memory_vtable opencl_memory;
/* Copies runs on a lane, without a wait. Host sides stay as they are until the lane was
 * waited for. */
zarr_status copy_runs(struct lane *l, const zarr_mem *dst, const zarr_mem *src,
                      uint64_t n, zarr_error *err);

/* decode.c: streams that are decoded, and their statuses, which come in one copy. */
struct decoding {
    cl_mem statuses;
    k_u32 *status;
    uint64_t *job; /* to which each stream belongs */
    uint64_t n;
};
zarr_status decoding_begin(struct decoding **out, struct device *d, uint64_t n,
                           zarr_error *err);
zarr_status decoding_launch(struct lane *l, cl_mem dst, cl_mem src,
                            const struct k_stream *streams, uint64_t n,
                            const struct decoding *w, zarr_error *err);
zarr_status decoding_read(struct lane *l, struct decoding *w, zarr_error *err);
/* After the lane was waited for. Sets the statuses of jobs that failed, and frees w,
 * which may be NULL. */
zarr_status decoding_end(struct decoding *w, zarr_codec_job *jobs, const char *codec,
                         zarr_error *err);
zarr_status unshuffle_launch(struct lane *l, cl_mem dst, cl_mem src,
                             const struct k_planes *parts, uint64_t n, zarr_error *err);
/* For qsort(): orders pointers to jobs, so that those with the same two buffers are
 * neighbours. */
int by_buffers(const void *a, const void *b);
int same_buffers(const zarr_codec_job *a, const zarr_codec_job *b);
/* Gives all jobs the status. Returns it. */
zarr_status fail_all(zarr_codec_job *jobs, uint64_t n, zarr_status st);

/* lz4.c, shuffle.c, blosc.c */
extern const zarr_codec_impl_vtable opencl_lz4, opencl_shuffle, opencl_blosc;

#endif
