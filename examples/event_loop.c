/* Introduces: zarr_request_fd(), zarr_array_write_many_submit(), zarr_array_write_many(),
 * zarr_cancel_reset()
 *
 * Writes two halves of an array in one request, while poll() waits for it together with
 * other descriptors of a program. A call whose cancel object is set does nothing.
 */
#include <poll.h>
#include <stdio.h>

#include <zarrc/zarrc.h>

#define N (1 << 20)
static uint8_t data[2][N], back[2 * N];

static zarr_status write_in_loop(zarr_array *a, zarr_io_part *half,
                                 const zarr_io_options *opts, zarr_error *err)
{
    zarr_request *request = NULL;
    struct pollfd set = {.events = POLLIN};
    zarr_status st;

    if (zarr_array_write_many_submit(&request, a, half, 2, opts, err) ||
        zarr_request_fd(request, &set.fd, err))
        return zarr_request_free(request), err->code;
    while (poll(&set, 1, -1) != 1)
        continue; /* here a program looks at its other descriptors */
    st = zarr_request_wait(request, 0, NULL, err); /* the status of the write */
    return zarr_request_free(request), st;
}

int main(void)
{
    const uint64_t shape[1] = {2 * N}, n[1] = {N}, at[2][1] = {{0}, {N}};
    zarr_io_options opts = ZARR_IO_OPTIONS_INIT;
    zarr_io_part half[2] = {{0}};
    zarr_tensor tensor[2];
    zarr_selection *box[2] = {0};
    zarr_array *a = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    for (int i = 0; i < 2 && !err.code; i++) {
        data[i][0] = (uint8_t)(i + 1);
        zarr_tensor_host(&tensor[i], "uint8", data[i], N, 1, n);
        if (zarr_selection_box(&box[i], 1, shape, at[i], n, &err) == ZARR_OK)
            half[i] = (zarr_io_part){.selection = box[i], .tensor = &tensor[i]};
    }
    if (err.code || zarr_cancel_create(&opts.cancel, &err) ||
        zarr_create_array(&a, NULL, "run.zarr/a", "w", ZARR_UINT8, 1, shape, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_cancel_set(opts.cancel); /* as a signal handler would */
    if (zarr_array_write_many(a, half, 2, &opts, &err) != ZARR_ERR_CANCELLED)
        return 1;
    zarr_cancel_reset(opts.cancel); /* the next call runs again */
    if (write_in_loop(a, half, &opts, &err) ||
        zarr_array_read_box(a, NULL, NULL, ZARR_UINT8, back, sizeof back, &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    zarr_selection_free(box[0]), zarr_selection_free(box[1]);
    zarr_cancel_free(opts.cancel), zarr_array_free(a);
    return back[0] != 1 || back[N] != 2;
}
