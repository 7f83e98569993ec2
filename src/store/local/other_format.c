/*
 * store/local/other_format.c - what a file is that was opened as a store, after opening
 * it as a folder failed. The first bytes of the file decide, not its name. Thread class:
 * any thread.
 */
#include "store/local/local_int.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

struct other_file {
    const char *magic;
    size_t bytes;
    const char *name, *remedy;
};

static const char reads_hdf5[] = "ncdump -h and h5dump -H show it; xarray "
                                 "(open_dataset, to_zarr) and h5py read it";
static const char reads_netcdf[] = "ncdump -h shows it; xarray (open_dataset, to_zarr) "
                                   "converts it, and nccopy writes NCZarr";
static const char reads_zip[] = "zip:PATH opens it, and so does a name that ends in .zip";
static const char reads_tiff[] =
    "tiffinfo and gdalinfo show it; tifffile, bioformats2raw "
    "and GDAL convert it";
static const char reads_archive[] = "unpack it first, because zarrc reads folders";

#define MAGIC(bytes) bytes, sizeof bytes - 1
static const struct other_file other_files[] = {
    {MAGIC("CDF\001"), "a netCDF file", reads_netcdf},
    {MAGIC("CDF\002"), "a netCDF file", reads_netcdf},
    {MAGIC("CDF\005"), "a netCDF file", reads_netcdf},
    {MAGIC("PK\003\004"), "a zip file", reads_zip},
    {MAGIC("PK\005\006"), "a zip file", reads_zip},
    {MAGIC("II*\0"), "a TIFF file", reads_tiff},
    {MAGIC("MM\0*"), "a TIFF file", reads_tiff},
    {MAGIC("II+\0"), "a TIFF file", reads_tiff},
    {MAGIC("MM\0+"), "a TIFF file", reads_tiff},
    {MAGIC("GRIB"), "a GRIB file", "wgrib2 shows it; cfgrib and GDAL read it"},
    {MAGIC("SIMPLE  ="), "a FITS file", "astropy.io.fits reads it"},
    {MAGIC("\x93NUMPY"), "a NumPy file", "numpy.load() and zarrc import read it"},
    {MAGIC("\x1f\x8b"), "a gzip file", reads_archive},
    {MAGIC("\x28\xb5\x2f\xfd"), "a zstd file", reads_archive},
};
static const struct other_file hdf5_file = {MAGIC("\x89HDF\r\n\x1a\n"),
                                            "an HDF5 or netCDF-4 file", reads_hdf5};
static const struct other_file tar_file = {MAGIC("ustar"), "a tar file", reads_archive};
static const struct other_file references_file = {
    NULL, 0, "a kerchunk file of references",
    "fsspec (the file system \"reference\") and xarray (the engine \"kerchunk\") read "
    "it"};
enum {
    TAR_AT = 257,
    HDF5_LAST = 2048, /* HDF5 begins there at the latest, after a block of the user */
    HEAD = HDF5_LAST + 16
};

static bool has_magic(const char *head, size_t n, size_t at, const struct other_file *f)
{
    return at + f->bytes <= n && memcmp(head + at, f->magic, f->bytes) == 0;
}

/* Whether a text is a JSON object that begins with a member of kerchunk's. */
static bool has_references(const char *head)
{
    static const char space[] = " \t\r\n";
    static const char *const members[] = {"\"version\"", "\"refs\"", "\"templates\"",
                                          "\"gen\"", "\".z"};

    head += strspn(head, space);
    if (*head != '{')
        return false;
    head += 1 + strspn(head + 1, space);
    for (size_t i = 0; i < ZR_COUNT(members); i++)
        if (strncmp(head, members[i], strlen(members[i])) == 0)
            return true;
    return false;
}

/* head[n] is 0. */
static const struct other_file *find_other_file(const char *head, size_t n)
{
    for (size_t i = 0; i < ZR_COUNT(other_files); i++)
        if (has_magic(head, n, 0, &other_files[i]))
            return &other_files[i];
    for (size_t at = 0; at <= HDF5_LAST; at = at ? 2 * at : 512)
        if (has_magic(head, n, at, &hdf5_file))
            return &hdf5_file;
    if (has_references(head))
        return &references_file;
    return has_magic(head, n, TAR_AT, &tar_file) ? &tar_file : NULL;
}

/* Opens the file on the path: what is below a file cannot be opened. Cuts the path there.
 * Returns -1 if there is none. */
static int open_file_on(char *path)
{
    for (;;) {
        const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        char *slash = strrchr(path, '/');

        if (fd >= 0 || errno != ENOTDIR || !slash || slash == path)
            return fd;
        *slash = '\0';
    }
}

zarr_status zr_local_fail_file(const zarr_allocator *alloc, const char *path,
                               zarr_error *err)
{
    char head[HEAD + 1] = {0};
    char *at = zr_strdup(alloc, path);
    const int fd = at ? open_file_on(at) : -1;
    const struct other_file *f = NULL;
    struct stat file;
    zarr_status st;

    if (fd >= 0 && fstat(fd, &file) == 0 && S_ISREG(file.st_mode)) {
        const ssize_t n = pread(fd, head, HEAD, 0);

        f = n > 0 ? find_other_file(head, (size_t)n) : NULL;
    }
    if (fd >= 0)
        close(fd);
    st = f ? zr_fail(err, ZARR_ERR_UNSUPPORTED, "%s is %s, not a Zarr store: %s", at,
                     f->name, f->remedy)
           : zr_fail_os(err, ZARR_ERR_INVALID, ENOTDIR, "%s is not a Zarr store",
                        at ? at : path);
    zr_free(alloc, at);
    return st;
}
