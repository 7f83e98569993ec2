/* Introduces: zarr_array_attribute_get_double(), zarr_array_attribute_set_double(),
 * zarr_array_attribute_set_text(), zarr_array_attribute_get_texts()
 *
 * Sets and gets attributes of an array.
 */
#include <stdio.h>

#include <zarrc/zarrc.h>

static zarr_status double_scale(const char *where, zarr_error *err)
{
    zarr_array *a = NULL;
    double scale = 0;
    const int failed = zarr_open_array(&a, NULL, where, "r+", err) ||
                       zarr_array_attribute_get_double(a, "scale", &scale, err) ||
                       zarr_array_attribute_set_double(a, "scale", 2 * scale, err);

    zarr_array_free(a);
    return failed ? err->code : ZARR_OK;
}

static zarr_status show_text_list(const zarr_array *a, const char *name, zarr_error *err)
{
    zarr_texts *list = NULL;
    const zarr_status st = zarr_array_attribute_get_texts(&list, a, name, err);

    for (uint64_t i = 0; st == ZARR_OK && i < list->n; i++)
        printf("%s\n", list->text[i]);
    zarr_texts_free(list);
    return st;
}

int main(void)
{
    const char *const names[2] = {"Basel", "Zürich"};
    const char *where = "run.zarr/temp";
    double scale = 0;
    zarr_array *a = NULL;
    zarr_error err = ZARR_ERROR_INIT;

    if (zarr_create_array(&a, NULL, where, "w", ZARR_INT16, 0, NULL, &err) ||
        zarr_array_attribute_set_text(a, "units", "K", &err) ||
        zarr_array_attribute_set_texts(a, "stations", names, 2, &err) ||
        zarr_array_attribute_set_double(a, "scale", 0.25, &err) ||
        double_scale(where, &err) || zarr_array_refresh(a, NULL, NULL, &err) ||
        zarr_array_attribute_get_double(a, "scale", &scale, &err) ||
        show_text_list(a, "stations", &err))
        return fprintf(stderr, "%s\n", err.message), 1;
    printf("scale %g\n", scale);
    zarr_array_free(a);
    return 0;
}
