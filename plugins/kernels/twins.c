#include "twins.h"

#include <stddef.h>
#include <string.h>

#include "kernels.h"

#define B(k)    (a[k].bytes)
#define U(k)    (a[k].number)
#define U32(k)  ((k_u32)a[k].number)
#define TWIN(x) static void twin_##x(uint64_t n, const struct kernels_argument *a)
TWIN(copy_boxes)
{
    K_RUN(n, k_copy_boxes(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(fill_boxes)
{
    K_RUN(n, k_fill_boxes(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(copy_runs)
{
    K_RUN(n, k_copy_runs(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(gather)
{
    K_RUN(n, k_gather(B(0), B(1), B(2), U(3), U32(4), U32(5)));
}
TWIN(differ)
{
    K_RUN(n, k_differ(B(0), B(1), B(2), B(3), U(4), U(5), U32(6)));
}
TWIN(unshuffle)
{
    K_RUN(n, k_unshuffle(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(shuffle)
{
    K_RUN(n, k_shuffle(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(decode)
{
    K_RUN(n, k_decode(B(0), B(1), B(2), B(3), U(4)));
}
TWIN(encode)
{
    K_RUN(n, k_encode(B(0), B(1), B(2), B(3), U(4)));
}
TWIN(encode_pieces)
{
    K_RUN(n, k_encode_pieces(B(0), B(1), B(2), U(3)));
}
TWIN(join_blocks)
{
    K_RUN(n, k_join_blocks(B(0), B(1), B(2), B(3), B(4), B(5), B(6), U(7)));
}
TWIN(blosc_pack)
{
    K_RUN(n, k_blosc_pack(B(0), B(1), B(2), B(3), B(4), B(5), B(6), U(7)));
}
TWIN(blosc_open)
{
    K_RUN(n, k_blosc_open(B(0), B(1), B(2), B(3), U(4)));
}
TWIN(blosc_number)
{
    K_RUN(n, k_blosc_number(B(0), B(1), U(2)));
}
TWIN(blosc_list)
{
    K_RUN(n, k_blosc_list(B(0), B(1), B(2), B(3), B(4), U(5), U(6)));
}
TWIN(check_streams)
{
    K_RUN(n, k_check_streams(B(0), B(1), B(2), U(3)));
}
TWIN(zstd_take)
{
    K_RUN(n, k_zstd_take(B(0), B(1), U(2)));
}
TWIN(zstd_open)
{
    K_RUN(n, k_zstd_open(B(0), B(1), B(2), B(3), U(4), U(5)));
}
TWIN(zstd_literals)
{
    K_RUN(n, k_zstd_literals(B(0), B(1), B(2), B(3), U(4), U(5)));
}
TWIN(zstd_sequences)
{
    K_RUN(n, k_zstd_sequences(B(0), B(1), B(2), B(3), U(4), U(5)));
}
TWIN(zstd_execute)
{
    K_RUN(n, k_zstd_execute(B(0), B(1), B(2), B(3), B(4), U(5), U(6)));
}
TWIN(sum_slices)
{
    K_RUN(n, k_sum_slices(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(sum_end)
{
    K_RUN(n, k_sum_end(B(0), B(1), B(2), B(3), B(4), U(5), U(6)));
}
TWIN(cast)
{
    K_RUN(n, k_cast(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(unscale)
{
    K_RUN(n, k_unscale(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(scale)
{
    K_RUN(n, k_scale(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(delta)
{
    K_RUN(n, k_delta(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(unpack_bits)
{
    K_RUN(n, k_unpack_bits(B(0), B(1), B(2), B(3), U(4), U(5)));
}
TWIN(pack_bits)
{
    K_RUN(n, k_pack_bits(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(delta_sums)
{
    K_RUN(n, k_delta_sums(B(0), B(1), B(2), U(3), U(4)));
}
TWIN(undelta)
{
    K_RUN(n, k_undelta(B(0), B(1), B(2), B(3), U(4), U(5)));
}

#define ROW(x)                                                                           \
    {                                                                                    \
        "k_" #x, twin_##x                                                                \
    }
static const struct {
    const char *name;
    void (*run)(uint64_t n, const struct kernels_argument *a);
} twins[] = {
    ROW(copy_boxes),     ROW(fill_boxes),    ROW(copy_runs),    ROW(gather),
    ROW(differ),         ROW(unshuffle),     ROW(shuffle),      ROW(decode),
    ROW(encode),         ROW(encode_pieces), ROW(join_blocks),  ROW(blosc_pack),
    ROW(blosc_open),     ROW(blosc_number),  ROW(blosc_list),   ROW(sum_slices),
    ROW(sum_end),        ROW(cast),          ROW(unscale),      ROW(scale),
    ROW(delta),          ROW(delta_sums),    ROW(undelta),      ROW(unpack_bits),
    ROW(pack_bits),      ROW(zstd_take),     ROW(zstd_open),    ROW(zstd_literals),
    ROW(zstd_sequences), ROW(zstd_execute),  ROW(check_streams)};

int kernels_twin(const char *name, uint64_t n, const struct kernels_argument *arguments)
{
    for (size_t k = 0; k < sizeof twins / sizeof *twins; k++)
        if (strcmp(twins[k].name, name) == 0) {
            twins[k].run(n, arguments);
            return 1;
        }
    return 0;
}
