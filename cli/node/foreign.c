/*
 * node/foreign.c - recognises files of other formats that are given as a store, and
 * tells which program reads them. Formats are recognised by their first bytes,
 * not by the name.
 */
#include "node/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct foreign {
    const char *magic;
    size_t bytes;
    const char *name, *hint;
};

static const char hdf5_hint[] = "netCDF-4 files are HDF5, too. ncdump -h and h5dump -H "
                                "show it; xarray (open_dataset, "
                                "to_zarr) and h5py read it.";
static const char netcdf_hint[] =
    "ncdump -h shows it; xarray (open_dataset, to_zarr) converts it, and nccopy writes "
    "NCZarr.";
static const char zip_hint[] =
    "zarrc reads folders: unzip it first. zarr-python's ZipStore reads it as it is.";
static const char tiff_hint[] =
    "tiffinfo and gdalinfo show it; tifffile, bioformats2raw and GDAL convert it.";
static const char archive_hint[] = "Unpack it first: zarrc reads folders.";

#define MAGIC(bytes) bytes, sizeof bytes - 1
static const struct foreign files[] = {
    {MAGIC("CDF\001"), "a netCDF file", netcdf_hint},
    {MAGIC("CDF\002"), "a netCDF file", netcdf_hint},
    {MAGIC("CDF\005"), "a netCDF file", netcdf_hint},
    {MAGIC("\x89HDF\r\n\x1a\n"), "an HDF5 file", hdf5_hint},
    {MAGIC("PK\003\004"), "a zip file", zip_hint},
    {MAGIC("PK\005\006"), "a zip file", zip_hint},
    {MAGIC("II*\0"), "a TIFF file", tiff_hint},
    {MAGIC("MM\0*"), "a TIFF file", tiff_hint},
    {MAGIC("II+\0"), "a TIFF file", tiff_hint},
    {MAGIC("MM\0+"), "a TIFF file", tiff_hint},
    {MAGIC("GRIB"), "a GRIB file", "wgrib2 shows it; cfgrib and GDAL read it."},
    {MAGIC("SIMPLE  ="), "a FITS file", "astropy.io.fits reads it."},
    {MAGIC("\x93NUMPY"), "a NumPy file", "zarrc import reads it."},
    {MAGIC("\x1f\x8b"), "a gzip file", archive_hint},
    {MAGIC("\x28\xb5\x2f\xfd"), "a zstd file", archive_hint},
};
static const struct foreign references = {NULL, 0, "a kerchunk file of references",
                                          "fsspec (the file system \"reference\") and "
                                          "xarray (the engine \"kerchunk\") read it."};
static const struct foreign tar = {MAGIC("ustar"), "a tar file", archive_hint};

/* Whether a text is a JSON object that begins with a member of kerchunk's. */
static bool is_references(const char *head)
{
    static const char space[] = " \t\r\n";
    static const char *const members[] = {"\"version\"", "\"refs\"", "\"templates\"",
                                          "\"gen\"", "\".z"};

    head += strspn(head, space);
    if (*head != '{')
        return false;
    head += 1 + strspn(head + 1, space);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        if (strncmp(head, members[i], strlen(members[i])) == 0)
            return true;
    return false;
}

static const struct foreign *find_file(const char *path)
{
    static const long hdf5_at[] = {512, 1024, 2048}; /* after a block of the user */
    const struct foreign *found = NULL;
    char head[2048 + 16] = {0};
    FILE *file = fopen(path, "rb");
    const size_t n = file ? fread(head, 1, sizeof head - 1, file) : 0;

    for (size_t i = 0; i < sizeof files / sizeof *files && !found; i++)
        if (n >= files[i].bytes && memcmp(head, files[i].magic, files[i].bytes) == 0)
            found = &files[i];
    for (size_t i = 0; i < sizeof hdf5_at / sizeof *hdf5_at && !found; i++)
        if (memcmp(head + hdf5_at[i], files[3].magic, files[3].bytes) == 0)
            found = &files[3];
    if (!found && is_references(head))
        found = &references;
    if (!found && memcmp(head + 257, tar.magic, tar.bytes) == 0)
        found = &tar;
    if (file)
        fclose(file);
    return found;
}

/* The first part of the path that is not a folder, if it is a file; owned, or NULL. */
static char *file_on_path(const char *path)
{
    char *at = cli_strdup(path), *found = NULL;
    struct stat st;

    for (char *slash = strchr(at + 1, '/'); *at && !found;
         slash = strchr(slash + 1, '/')) {
        if (slash)
            *slash = '\0';
        if (stat(at, &st) == 0 && S_ISREG(st.st_mode))
            found = cli_strdup(at);
        if (!slash)
            break;
        *slash = '/';
    }
    free(at);
    return found;
}

int cli_refuse_foreign(struct cli *cli, const char *path, const char *wanted)
{
    char *file = file_on_path(path);
    const struct foreign *f = file ? find_file(file) : NULL;
    int rc = CLI_OK;

    if (f)
        rc = cli_error(cli, CLI_UNSUPPORTED, f->hint, "%s is %s, not %s", file, f->name,
                       wanted);
    free(file);
    return rc;
}
