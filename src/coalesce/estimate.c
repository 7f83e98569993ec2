/*
 * coalesce/estimate.c - how long a request takes: moving averages of latency and
 * bandwidth, and what follows from them for merging. The result depends on the samples
 * and their order only.
 * Thread class: shared.
 */
#include "coalesce/coalesce.h"

#define SAMPLE_BYTES     (UINT64_C(64) << 10) /* of a transfer that tells the bandwidth */
#define LATENCY_MOST_NS  UINT64_C(10000000000)
#define BANDWIDTH_MOST   (UINT64_C(1) << 40) /* bytes per second */
#define LATENCY_GUESS_NS UINT64_C(30000000)
#define BANDWIDTH_GUESS  (UINT64_C(32) << 20)
#define GAP_LEAST        (UINT64_C(16) << 10)
#define GAP_MOST         (UINT64_C(1) << 20)
#define REQUEST_BYTES    (UINT64_C(8) << 20)
#define WASTE_LEAST      (UINT64_C(64) << 10)
#define NS_PER_S         UINT64_C(1000000000)
enum {
    SAMPLE_WEIGHT = 8 /* a sample counts as one of so many */
};

static void average(atomic_uint_fast64_t *mean, uint64_t sample)
{
    uint_fast64_t old = atomic_load(mean), next;

    do
        next = old == 0 ? sample : old - old / SAMPLE_WEIGHT + sample / SAMPLE_WEIGHT;
    while (!atomic_compare_exchange_weak(mean, &old, next));
}

void zr_estimate_add(struct zr_estimate *e, uint64_t wait_ns, uint64_t transfer_ns,
                     uint64_t bytes)
{
    uint64_t per_s;

    average(&e->latency_ns, ZR_MIN(ZR_MAX(wait_ns, UINT64_C(1)), LATENCY_MOST_NS));
    if (bytes < SAMPLE_BYTES)
        return;
    per_s = zr_mul_cap(bytes, NS_PER_S) / ZR_MAX(transfer_ns, UINT64_C(1));
    average(&e->bytes_per_s, ZR_MIN(ZR_MAX(per_s, UINT64_C(1)), BANDWIDTH_MOST));
}

void zr_estimate_rules(struct zr_estimate *e, struct zr_joint_rules *out)
{
    uint64_t latency = atomic_load(&e->latency_ns);
    uint64_t bandwidth = atomic_load(&e->bytes_per_s);
    uint64_t gap;

    latency = latency != 0 ? latency : LATENCY_GUESS_NS;
    bandwidth = bandwidth != 0 ? bandwidth : BANDWIDTH_GUESS;
    gap = zr_mul_cap(latency, bandwidth) / NS_PER_S;
    *out = (struct zr_joint_rules){.gap = ZR_MIN(ZR_MAX(gap, GAP_LEAST), GAP_MOST),
                                   .waste = WASTE_LEAST,
                                   .bytes = REQUEST_BYTES};
}
