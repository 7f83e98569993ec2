/*
 * unit/s3/test_probe.c - a cancel by tag ends a write that waits for the probe of another
 * write. The server is a socket that never answers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "s3/s3.h"
#include "sched/sched.h"

static zarr_store *store;

/* A new document; its address is its tag. */
struct write {
    zarr_store_op op, *ops[1];
    zr_thread thread;
    atomic_bool has_ended;
};

static void write_done(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct write *w = arg;

    (void)op;
    (void)err;
    atomic_store(&w->has_ended, true);
}

static void *write_main(void *arg)
{
    struct write *w = arg;

    zarr_store_submit(store, w->ops, 1, write_done, w);
    return NULL;
}

static void write_start(struct write *w)
{
    zarr_error err;

    w->op = (zarr_store_op){.verb = ZARR_STORE_PUT,
                            .flags = ZARR_STORE_OP_IF_VERSION,
                            .key = "zarr.json",
                            .mem = {.device_type = ZARR_DEVICE_CPU}};
    w->ops[0] = &w->op;
    assert_int_equal(zr_thread_start(&w->thread, write_main, w, &err), ZARR_OK);
}

/* Cancels until it helps: one that comes before the write does nothing. */
static void write_cancel(struct write *w)
{
    while (!atomic_load(&w->has_ended)) {
        zarr_store_cancel(store, w);
        (void)poll(NULL, 0, 1);
    }
    zr_thread_join(&w->thread);
    assert_int_equal(w->op.status, ZARR_ERR_CANCELLED);
}

/* A socket of loopback that listens, and its URL. */
static int start_server(char url[64])
{
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof at;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, n), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    snprintf(url, 64, "http://127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

static const char *no_variable(const char *name)
{
    (void)name;
    return NULL;
}

static void open_store(const struct zr_store_env *env, const char *endpoint)
{
    const zarr_store_options opts = {.struct_size = sizeof opts};
    char config[256];
    void *self = NULL;
    zarr_error err;

    snprintf(config, sizeof config,
             "{\"endpoint\": \"%s\", \"region\": \"us-east-1\", \"access_key_id\": "
             "\"AKIDEXAMPLE\", \"secret_access_key\": \"secret\"}",
             endpoint);
    if (zr_s3_open(&self, env, "s3://bucket/x", config, no_variable, &err) != ZARR_OK)
        fail_msg("%s", err.message);
    assert_int_equal(zr_store_open_custom_url(&store, env, &zr_s3_vtable, self,
                                              "s3://bucket/x", &opts, &err),
                     ZARR_OK);
}

static void test_a_cancel_of_a_waiter(void **state)
{
    static struct write first, second;
    struct zr_memory_registry memory;
    struct zr_store_env env = {.memory = &memory};
    struct pollfd came = {.events = POLLIN};
    char endpoint[64];
    zarr_error err;

    (void)state;
    assert_int_equal(zr_memory_registry_init(&memory, NULL, &err), ZARR_OK);
    zr_limits_default(&env.limits);
    came.fd = start_server(endpoint);
    open_store(&env, endpoint);
    write_start(&first);
    assert_int_equal(poll(&came, 1, -1), 1); /* its probe is on its way */
    assert_true(accept(came.fd, NULL, NULL) >= 0);
    write_start(&second);
    write_cancel(&second);
    assert_false(atomic_load(&first.has_ended));
    write_cancel(&first);
    assert_int_equal(poll(&came, 1, 0), 0); /* no write sent more */
    zarr_store_free(store);
    zr_memory_registry_deinit(&memory);
    close(came.fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_cancel_of_a_waiter)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
