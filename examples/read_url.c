/* Introduces: zarr_location_parse(), zarr_store_read_counters()
 *
 * Reads an array that a web server has, with options for the requests.
 * Usage: read_url https://HOST/x.zarr/temp [FILE of a bearer token]
 */
#include <stdio.h>
#include <stdlib.h>

#include <zarrc/zarrc.h>

static zarr_status print_sum(zarr_array *a, zarr_error *err)
{
    const uint64_t n = zarr_array_n_items(a);
    double *data = calloc(n + 1, sizeof *data), sum = 0;
    const zarr_status st =
        zarr_array_read_box(a, NULL, NULL, ZARR_FLOAT64, data, n * sizeof *data, err);

    for (uint64_t i = 0; st == ZARR_OK && i < n; i++)
        sum += data[i];
    if (st == ZARR_OK)
        printf("the sum is %g\n", sum);
    free(data);
    return st;
}

int main(int argc, char **argv)
{
    zarr_store_counters sent = ZARR_STORE_COUNTERS_INIT;
    zarr_store_options opts = ZARR_STORE_OPTIONS_INIT;
    char token[1000] = "", config[1100];
    zarr_context *ctx = NULL;
    zarr_location *at = NULL;
    zarr_store *store = NULL;
    zarr_array *a = NULL;
    zarr_error err = ZARR_ERROR_INIT;
    FILE *file = argc > 2 ? fopen(argv[2], "r") : NULL;

    if (argc < 2 || (file && fscanf(file, "%999[A-Za-z0-9._~+/=-]", token) != 1))
        return fprintf(stderr, "usage: read_url URL [FILE]\n"), 2;
    snprintf(config, sizeof config, "{\"tries\": 3, \"bearer_token\": \"%s\"}", token);
    opts.config = file ? config : "{\"tries\": 3}";
    if (zarr_context_create(&ctx, NULL, &err) ||
        zarr_location_parse(&at, ctx, argv[1], &err) ||
        zarr_store_open(&store, ctx, at->url, &opts, &err) ||
        zarr_array_open(&a, store, at->path, NULL, &err) || print_sum(a, &err)) {
        fprintf(stderr, "%s: %s\n", zarr_status_text(err.code), err.message);
    } else {
        zarr_store_read_counters(store, &sent);
        printf("%d requests\n", (int)sent.requests);
    }
    zarr_array_free(a), zarr_store_free(store);
    zarr_location_free(at), zarr_context_free(ctx);
    if (file)
        (void)fclose(file);
    return err.code != ZARR_OK;
}
