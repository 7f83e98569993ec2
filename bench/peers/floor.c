/* bench/peers/floor.c - the floor: the least work that a case needs. Loops over open,
 * pread, one codec and a copy of rows, for a layout that the command line gives. It reads
 * no metadata, checks no index and replaces nothing in one step. */
#include "floor_codec.h"
#include "worker.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE2__
#    include <emmintrin.h>
#endif

enum {
    SLICE = 128 << 10, /* of a raw chunk: stays in a cache */
    STREAMED =
        32 << 20, /* an output of at least so many bytes leaves the caches anyway */
    GROUPS = 8    /* of inner chunks, for each caller, if there are few shards */
};

/* What a thread keeps. */
struct lane {
    struct floor_codec *codec;
    char *in, *decoded, *encoded;
    const char *advised; /* the buffer of chunks */
};

static struct {
    enum floor_kind kind;
    int is_sharded, ndim;
    uint64_t grid[MOST_DIMS], inner_grid[MOST_DIMS]; /* counts of chunks */
    uint64_t n_chunks, n_inner, chunk_bytes, inner_bytes, item, n_groups;
    size_t room;
    struct lane lane[MOST_CALLERS];
    int *descriptor;      /* of each shard */
    uint64_t (*index)[2]; /* offset and length of each inner chunk of each shard */
    struct box *whole;
} f;

/* Huge pages for an output, where it has whole ones: nothing costs less. */
static void advise(const struct box *box)
{
    const uintptr_t page = 2 << 20,
                    first = ((uintptr_t)box->data + page - 1) & ~(page - 1);
    const uintptr_t end = ((uintptr_t)box->data + box->bytes) & ~(page - 1);

    if (end > first)
        madvise((void *)first, end - first, MADV_HUGEPAGE);
}

/* ---- rows ---- */

static void stream_row(char *to, const char *from, size_t n)
{
#ifdef __SSE2__
    if (((uintptr_t)to & 15) == 0 && n % 64 == 0) {
        for (size_t i = 0; i < n; i += 16)
            _mm_stream_si128((__m128i *)(void *)(to + i),
                             _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
        return;
    }
#endif
    memcpy(to, from, n);
}

/* Where row `number` of a chunk begins in a box, in elements. */
static uint64_t row_place(const struct box *box, const uint64_t *origin,
                          const uint64_t *extent, uint64_t number)
{
    const int last = f.ndim - 1;
    uint64_t place = 0, scale = 1;

    for (int d = last; d >= 0; d--) {
        const uint64_t i = d == last ? 0 : number % extent[d];

        if (d < last)
            number /= extent[d];
        place += (origin[d] - box->origin[d] + i) * scale;
        scale *= box->extent[d];
    }
    return place;
}

/* Bytes [at, at + n) of a dense chunk of the shape `extent`, whose first element is at
 * `origin` of `box`. */
static void scatter(const struct box *box, const uint64_t *origin, const uint64_t *extent,
                    const char *from, size_t at, size_t n)
{
    const int last = f.ndim - 1;
    const size_t row = extent[last] * f.item;
    const int streams = box->bytes >= STREAMED;

    while (n > 0) {
        const size_t within = at % row, m = row - within < n ? row - within : n;
        const uint64_t place = row_place(box, origin, extent, at / row);

        if (streams)
            stream_row(box->data + place * f.item + within, from, m);
        else
            memcpy(box->data + place * f.item + within, from, m);
        from += m;
        at += m;
        n -= m;
    }
}

static void gather(char *to, const struct box *box, const uint64_t *origin,
                   const uint64_t *extent, size_t bytes)
{
    const int last = f.ndim - 1;
    const size_t row = extent[last] * f.item;

    for (uint64_t r = 0; r < bytes / row; r++, to += row) {
        const uint64_t place = row_place(box, origin, extent, r);

        memcpy(to, box->data + place * f.item, row);
    }
}

/* ---- files ---- */

static void chunk_origin(uint64_t i, const uint64_t *counts, const uint64_t *edge,
                         uint64_t *out)
{
    for (int d = f.ndim; d-- > 0; i /= counts[d])
        out[d] = i % counts[d] * edge[d];
}

static void format_key(char *out, size_t room, const char *place, uint64_t i)
{
    uint64_t part[MOST_DIMS];
    const uint64_t one[MOST_DIMS] = {1, 1, 1, 1};
    int n = snprintf(out, room, "%s/c", place);

    chunk_origin(i, f.grid, one, part);
    for (int d = 0; d < f.ndim; d++)
        n += snprintf(out + n, room - (size_t)n, "/%llu", (unsigned long long)part[d]);
}

static int open_chunk(const struct job *job, uint64_t i)
{
    char key[512];
    int fd;

    if (job->delay_ms) {
        const struct timespec t = {0, (long)job->delay_ms * 1000000};

        nanosleep(&t, NULL);
    }
    format_key(key, sizeof key, job->place, i);
    fd = open(key, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        fail("%s: cannot be opened", key);
    return fd;
}

static size_t read_range(int fd, char *to, size_t n, uint64_t at)
{
    size_t done = 0;

    while (done < n) {
        const ssize_t got = pread(fd, to + done, n - done, (off_t)(at + done));

        if (got < 0)
            fail("pread failed");
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return done;
}

static size_t read_file(const struct job *job, uint64_t i, char *to)
{
    const int fd = open_chunk(job, i);
    const size_t n = read_range(fd, to, f.room, 0);

    close(fd);
    return n;
}

/* Folders are made when the first file in them is. */
static void write_file(const struct job *job, uint64_t i, const char *from, size_t n)
{
    char key[512];
    int fd;

    format_key(key, sizeof key, job->to, i);
    fd = open(key, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) {
        for (char *p = key + strlen(job->to) + 1; (p = strchr(p, '/')); *p++ = '/') {
            *p = 0;
            mkdir(key, 0777);
        }
        fd = open(key, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    if (fd < 0)
        fail("%s: cannot be made", key);
    while (n > 0) {
        const ssize_t done = write(fd, from, n);

        if (done <= 0)
            fail("write failed");
        from += done;
        n -= (size_t)done;
    }
    close(fd);
}

/* Descriptors and indexes of all shards. */
static void open_shards(struct job *job)
{
    f.descriptor = need(realloc(f.descriptor, f.n_chunks * sizeof *f.descriptor));
    f.index = need(realloc(f.index, f.n_chunks * f.n_inner * sizeof *f.index));
    for (uint64_t i = 0; i < f.n_chunks; i++) {
        const int fd = f.descriptor[i] = open_chunk(job, i);
        const size_t n = 16 * f.n_inner;

        if (read_range(fd, (char *)f.index[i * f.n_inner], n,
                       (uint64_t)lseek(fd, 0, SEEK_END) - n - 4) != n)
            fail("a short shard");
    }
}

static void close_shards(void)
{
    for (uint64_t i = 0; i < f.n_chunks; i++)
        close(f.descriptor[i]);
}

/* ---- reads ---- */

static void inner_origin(uint64_t shard, uint64_t k, const struct job *job, uint64_t *out)
{
    uint64_t base[MOST_DIMS];

    chunk_origin(shard, f.grid, job->unit, base);
    chunk_origin(k, f.inner_grid, job->inner, out);
    for (int d = 0; d < f.ndim; d++)
        out[d] += base[d];
}

static void put_inner(const struct job *job, uint64_t shard, uint64_t k, const char *from,
                      const struct box *box, struct lane *lane)
{
    uint64_t origin[MOST_DIMS];

    inner_origin(shard, k, job, origin);
    if (f.kind != FLOOR_RAW) {
        floor_decode(lane->codec, from, f.index[shard * f.n_inner + k][1], lane->decoded,
                     f.inner_bytes);
        from = lane->decoded;
    }
    scatter(box, origin, job->inner, from, 0, f.inner_bytes);
}

/* Some inner chunks that lie beside each other in the file: one read. */
static void read_group(struct job *job, uint64_t number, unsigned caller)
{
    struct lane *lane = &f.lane[caller];
    const uint64_t shard = number / f.n_groups, group = number % f.n_groups;
    const uint64_t first = group * f.n_inner / f.n_groups,
                   end = (group + 1) * f.n_inner / f.n_groups;
    uint64_t(*index)[2] = f.index + shard * f.n_inner;
    uint64_t low = UINT64_MAX, high = 0;

    if (first == end)
        return;
    for (uint64_t k = first; k < end; k++) {
        low = index[k][0] < low ? index[k][0] : low;
        high = index[k][0] + index[k][1] > high ? index[k][0] + index[k][1] : high;
    }
    if (high - low > f.room ||
        read_range(f.descriptor[shard], lane->in, high - low, low) != high - low)
        fail("a short shard");
    for (uint64_t k = first; k < end; k++)
        put_inner(job, shard, k, lane->in + (index[k][0] - low), f.whole, lane);
}

struct piece_target {
    const struct job *job;
    const struct box *box;
    const uint64_t *origin;
};

static void put_piece(void *user, const char *piece, size_t at, size_t n)
{
    const struct piece_target *t = user;

    scatter(t->box, t->origin, t->job->unit, piece, at, n);
}

static void read_chunk_into(struct job *job, uint64_t i, const struct box *box,
                            struct lane *lane)
{
    uint64_t origin[MOST_DIMS];
    struct piece_target target = {job, box, origin};
    size_t n;

    chunk_origin(i, f.grid, job->unit, origin);
    if (f.kind == FLOOR_RAW) {
        const int fd = open_chunk(job, i);

        for (size_t at = 0; at < f.chunk_bytes; at += n) {
            n = f.chunk_bytes - at < SLICE ? f.chunk_bytes - at : SLICE;
            if (read_range(fd, lane->in, n, at) != n)
                fail("a short chunk");
            scatter(box, origin, job->unit, lane->in, at, n);
        }
        close(fd);
        return;
    }
    n = read_file(job, i, lane->in);
    if (floor_pieces(lane->codec, lane->in, n, f.chunk_bytes, put_piece, &target))
        return;
    floor_decode(lane->codec, lane->in, n, lane->decoded, f.chunk_bytes);
    scatter(box, origin, job->unit, lane->decoded, 0, f.chunk_bytes);
}

static void read_chunk(struct job *job, uint64_t i, unsigned caller)
{
    read_chunk_into(job, i, f.whole, &f.lane[caller]);
}

static void read_all(struct job *job, struct box *box)
{
    f.whole = box;
    advise(box);
    if (!f.is_sharded) {
        each(job, f.n_chunks, read_chunk);
        return;
    }
    open_shards(job);
    f.n_groups = f.n_chunks >= 2 * job->callers ? 1 : GROUPS * job->callers;
    each(job, f.n_chunks * f.n_groups, read_group);
    close_shards();
}

static uint64_t chunk_number(const struct job *job, const uint64_t *origin)
{
    uint64_t i = 0;

    for (int d = 0; d < f.ndim; d++)
        i = i * f.grid[d] + origin[d] / job->unit[d];
    return i;
}

/* A whole chunk that is dense in memory: its decoder writes there. */
static void read_dense(struct job *job, uint64_t i, struct box *box, struct lane *lane)
{
    size_t n;

    if (f.kind == FLOOR_RAW && !f.is_sharded) {
        const int fd = open_chunk(job, i);

        if (read_range(fd, box->data, f.chunk_bytes, 0) != f.chunk_bytes)
            fail("a short chunk");
        close(fd);
        return;
    }
    n = read_file(job, i, lane->in);
    if (!f.is_sharded) {
        floor_decode(lane->codec, lane->in, n, box->data, f.chunk_bytes);
        return;
    }
    memcpy(f.index[i * f.n_inner], lane->in + n - 4 - 16 * f.n_inner, 16 * f.n_inner);
    for (uint64_t k = 0; k < f.n_inner; k++)
        put_inner(job, i, k, lane->in + f.index[i * f.n_inner + k][0], box, lane);
}

/* A whole chunk, or one inner chunk. */
static void read_box(struct job *job, struct box *box, unsigned caller)
{
    struct lane *lane = &f.lane[caller];
    const uint64_t i = chunk_number(job, box->origin);
    uint64_t k = 0, *place;

    if (box->bytes == f.chunk_bytes) {
        if (lane->advised != box->data)
            advise(box);
        lane->advised = box->data;
        read_dense(job, i, box, lane);
        return;
    }
    for (int d = 0; d < f.ndim; d++)
        k = k * f.inner_grid[d] + box->origin[d] % job->unit[d] / job->inner[d];
    place = f.index[i * f.n_inner + k];
    if (read_range(f.descriptor[i], lane->in, place[1], place[0]) != place[1])
        fail("a short shard");
    floor_decode(lane->codec, lane->in, place[1], box->data, f.inner_bytes);
}

/* ---- writes ---- */

static size_t encode_shard(struct job *job, uint64_t i, const struct box *box,
                           struct lane *lane)
{
    uint64_t(*index)[2] = f.index + i * f.n_inner;
    size_t at = 0, n_index = 16 * f.n_inner;
    uint32_t crc;

    for (uint64_t k = 0; k < f.n_inner; k++) {
        uint64_t origin[MOST_DIMS];

        inner_origin(i, k, job, origin);
        gather(lane->decoded, box, origin, job->inner, f.inner_bytes);
        index[k][0] = at;
        index[k][1] = floor_encode(lane->codec, lane->decoded, f.inner_bytes,
                                   lane->encoded + at, f.room - at);
        at += index[k][1];
    }
    memcpy(lane->encoded + at, index, n_index);
    crc = floor_crc32c(lane->encoded + at, n_index);
    memcpy(lane->encoded + at + n_index, &crc, 4);
    return at + n_index + 4;
}

static void write_job_chunk(struct job *job, uint64_t i, const struct box *box,
                            struct lane *lane)
{
    const char *from = lane->decoded;
    uint64_t origin[MOST_DIMS];

    if (f.is_sharded) {
        write_file(job, i, lane->encoded, encode_shard(job, i, box, lane));
        return;
    }
    chunk_origin(i, f.grid, job->unit, origin);
    if (box->bytes == f.chunk_bytes)
        from = box->data;
    else
        gather(lane->decoded, box, origin, job->unit, f.chunk_bytes);
    if (f.kind == FLOOR_RAW)
        write_file(job, i, from, f.chunk_bytes);
    else
        write_file(job, i, lane->encoded,
                   floor_encode(lane->codec, from, f.chunk_bytes, lane->encoded, f.room));
}

static void write_chunk(struct job *job, uint64_t i, unsigned caller)
{
    write_job_chunk(job, i, f.whole, &f.lane[caller]);
}

static void write_all(struct job *job, struct box *box)
{
    f.whole = box;
    each(job, f.n_chunks, write_chunk);
}

static void write_box(struct job *job, struct box *box, unsigned caller)
{
    write_job_chunk(job, chunk_number(job, box->origin), box, &f.lane[caller]);
}

/* ---- handles ---- */

static uint64_t slurp(const char *path)
{
    static char text[64 << 10];
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n;

    if (fd < 0)
        fail("%s: cannot be opened", path);
    n = read_range(fd, text, sizeof text, 0);
    close(fd);
    return n > 0;
}

static uint64_t open_one(struct job *job)
{
    char path[512];

    snprintf(path, sizeof path, "%s/zarr.json", job->place);
    return slurp(path) * job->shape[0];
}

static uint64_t list(struct job *job)
{
    DIR *folder = need(opendir(job->place));
    struct dirent *entry;
    char path[1024];
    uint64_t n = 0;

    while ((entry = readdir(folder)))
        if (entry->d_name[0] == 'a') {
            snprintf(path, sizeof path, "%s/%s/zarr.json", job->place, entry->d_name);
            n += slurp(path);
        }
    closedir(folder);
    return n;
}

static uint64_t open_nodes(struct job *job)
{
    char path[1024];
    uint64_t n = 0;

    for (uint64_t i = 0; i < job->n; i++) {
        snprintf(path, sizeof path, "%s/a%05u/zarr.json", job->place, (unsigned)i);
        n += slurp(path);
    }
    return n * job->shape[0];
}

/* ---- the layout ---- */

static void open_layout(struct job *job)
{
    if (f.is_sharded && strcmp(job->mode, "units") == 0 && job->n_region)
        open_shards(job);
}

static void begin(struct job *job)
{
    f.kind = floor_kind(job->codec);
    f.is_sharded = job->inner[0] > 0;
    f.ndim = job->ndim;
    f.item = job->item;
    f.n_chunks = f.n_inner = 1;
    f.chunk_bytes = f.inner_bytes = job->item;
    job->warmup = NULL; /* nothing is kept that a first read would fill */
    for (int d = 0; d < f.ndim && job->unit[d]; d++) {
        f.grid[d] = job->shape[d] / job->unit[d];
        f.inner_grid[d] = f.is_sharded ? job->unit[d] / job->inner[d] : 1;
        f.n_chunks *= f.grid[d];
        f.n_inner *= f.inner_grid[d];
        f.chunk_bytes *= job->unit[d];
        f.inner_bytes *= job->inner[d];
    }
    f.room = f.chunk_bytes + f.chunk_bytes / 4 + 20 * f.n_inner + (1 << 20);
    f.index = need(calloc(f.n_chunks * f.n_inner, sizeof *f.index));
    for (uint64_t c = 0; c < job->callers; c++) {
        f.lane[c].codec = floor_codec_open(f.kind, f.room, job->item, job->level);
        f.lane[c].in = map_bytes(f.room, 1);
        f.lane[c].decoded = map_bytes(f.room, 1);
        f.lane[c].encoded = map_bytes(f.room, 1);
    }
}

static void nothing(struct job *job)
{
    (void)job;
}

int main(int argc, char **argv)
{
    static const struct engine engine = {.begin = begin,
                                         .open = open_layout,
                                         .open_target = nothing,
                                         .close = nothing,
                                         .read = read_box,
                                         .write = write_box,
                                         .read_all = read_all,
                                         .write_all = write_all,
                                         .open_one = open_one,
                                         .list = list,
                                         .open_nodes = open_nodes};

    return worker_main(argc, argv, &engine);
}
