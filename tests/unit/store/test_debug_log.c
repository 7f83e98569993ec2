/*
 * unit/store/test_debug_log.c - what the level DEBUG tells: stores that are opened,
 * documents that are made and read, locks, and what is refused. No line for each chunk
 * that succeeds without a lock.
 */
#include "local_test.h"

struct lines {
    char text[4096];
};

static void note_line(void *user, uint32_t level, const char *text)
{
    struct lines *x = user;
    const size_t n = strlen(x->text);

    if (level == ZARR_LOG_DEBUG)
        snprintf(x->text + n, sizeof x->text - n, "%s\n", text);
}

static zarr_store_op document_op(uint32_t verb, const char *key, char *bytes)
{
    return (zarr_store_op){.verb = verb,
                           .flags = ZARR_STORE_OP_DOCUMENT,
                           .key = key,
                           .length = ZARR_STORE_TO_END,
                           .mem = zr_mem_of_host(bytes, 2)};
}

static void assert_line(struct lines *x, const char *want)
{
    if (!strstr(x->text, want))
        fail_msg("no line \"%s\" in:\n%s", want, x->text);
    x->text[0] = '\0';
}

static void lines_of_debug(void **state)
{
    struct world *w = fixture_world(state);
    static struct lines x;
    char bytes[] = "{}";
    zarr_store_op put = document_op(ZARR_STORE_PUT, "a/zarr.json", bytes);
    zarr_store_op get = document_op(ZARR_STORE_GET, "b/zarr.json", bytes);
    zarr_store_options o = {.struct_size = sizeof o};
    zarr_error err = {0};
    zarr_store *s;

    w->env.log = (struct zr_log){.fn = note_line, .user = &x, .level = ZARR_LOG_DEBUG};
    s = open_with(w, 0, ZARR_DURABILITY_NONE, 0, ZARR_SYMLINKS_DENY);
    assert_non_null(strstr(x.text, w->dir));
    assert_line(&x, ": ok\n");
    assert_status(zr_store_run_one(s, &put, &err), ZARR_OK);
    assert_non_null(strstr(x.text, "lock a/zarr.json: taken\n"));
    assert_line(&x, "PUT a/zarr.json: ok\n");
    assert_status(zr_store_run_one(s, &get, &err), ZARR_ERR_NOT_FOUND);
    assert_line(&x, "GET b/zarr.json: not found\n");
    make_link(w, "a", "link");
    assert_status(get_status(s, "link/zarr.json", &err), ZARR_ERR_IO);
    assert_non_null(strstr(x.text, "GET link/zarr.json: io\n"));
    assert_line(&x, "refused the symbolic link link to \"a\"\n");
    assert_status(put_text(s, "a/c/0", "1"), ZARR_OK);
    assert_line(&x, "lock a/c/0: taken\n");
    assert_status(get_status(s, "a/c/0", &err), ZARR_OK);
    assert_string_equal(x.text, "");
    zarr_store_free(s);
    assert_status(zr_store_open(&s, w->registry, &w->env, "/none/none", &o, &err),
                  ZARR_ERR_NOT_FOUND);
    assert_line(&x, "open /none/none: not found\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {T(lines_of_debug)};

    return cmocka_run_group_tests_name("debug_log", tests, NULL, NULL);
}
