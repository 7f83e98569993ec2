/*
 * unit/s3/test_probe.c - what depends on the moment of a write: a cancel by tag that
 * comes before its request or while it waits for the probe of another write; when a
 * doubtful probe is made again; how long the joining of parts may be silent; how often
 * and how long the metadata server is called. The server is a socket that never answers,
 * or a thread.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "net/curl_int.h"
#include "s3/s3_int.h"

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

static struct zr_memory_registry memory;
static struct zr_store_env env;

static int setup(void **state)
{
    zarr_error err;

    (void)state;
    env = (struct zr_store_env){.memory = &memory};
    zr_limits_default(&env.limits);
    return zr_memory_registry_init(&memory, NULL, &err) == ZARR_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    zarr_store_free(store);
    store = NULL; /* a test need not open one */
    zr_memory_registry_deinit(&memory);
    return 0;
}

static void test_a_cancel_of_a_waiter(void **state)
{
    static struct write first, second;
    struct pollfd came = {.events = POLLIN};
    char endpoint[64];

    (void)state;
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
    close(came.fd);
}

/* ---- a cancel before the request ---- */

/* The allocator of the store cancels the write whose thread it serves. */
static struct write *early;
static _Thread_local bool cancels_now;

static void cancel_early(void)
{
    if (!early || cancels_now)
        return;
    cancels_now = true;
    zarr_store_cancel(store, early);
    cancels_now = false;
}

static void *early_alloc(void *user, size_t bytes)
{
    (void)user;
    cancel_early();
    return malloc(bytes);
}

static void *early_realloc(void *user, void *block, size_t bytes)
{
    (void)user;
    cancel_early();
    return realloc(block, bytes);
}

static void early_free(void *user, void *block)
{
    (void)user;
    free(block);
}

/* The store learns of the cancel while submit() prepares the request. */
static void test_a_cancel_before_the_request(void **state)
{
    static const uint64_t lengths[] = {1, (64 << 20) + 1};
    static const zarr_allocator alloc = {NULL, early_alloc, early_realloc, early_free};
    struct pollfd came = {.events = POLLIN};
    char endpoint[64];
    uint8_t *body = calloc(1, lengths[1]);

    (void)state;
    assert_non_null(body);
    env.alloc = &alloc;
    came.fd = start_server(endpoint);
    open_store(&env, endpoint);
    for (int i = 0; i < 2; i++) {
        struct write w = {.op = {.verb = ZARR_STORE_PUT,
                                 .key = "k",
                                 .mem = {.device_type = ZARR_DEVICE_CPU,
                                         .handle = body,
                                         .bytes = lengths[i]}}};

        w.ops[0] = &w.op;
        early = &w;
        zarr_store_submit(store, w.ops, 1, write_done, &w);
        early = NULL;
        assert_true(atomic_load(&w.has_ended)); /* before a request */
        assert_int_equal(w.op.status, ZARR_ERR_CANCELLED);
    }
    assert_int_equal(poll(&came, 1, 0), 0);
    zarr_store_free(store); /* before its allocator */
    store = NULL;
    close(came.fd);
    free(body);
}

/* ---- a server ---- */

/* Answers one request after another until `ends`. */
static struct {
    int fd;
    zr_thread thread;
    atomic_bool ends;
    atomic_int n_probes; /* keys of them */
    atomic_bool holds;   /* a joining of parts has come, and gets no answer before */
    atomic_bool goes_on;
    bool refuses_right; /* conditions that hold */
} service;

static const char *choose_answer(const char *request)
{
    const bool is_probe = strstr(request, "/.zarrc-probe-") != NULL;

    if (strstr(request, "\nif-match: \"0000") || strstr(request, "\nif-none-match: "))
        return "412 Precondition Failed";
    if (strstr(request, "\nif-match: "))
        return service.refuses_right ? "412 Precondition Failed" : "200 OK";
    if (is_probe && strncmp(request, "PUT", 3) == 0)
        atomic_fetch_add(&service.n_probes, 1);
    return "200 OK";
}

static const char *choose_body(const char *request)
{
    if (strstr(request, "?uploads="))
        return "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
               "</InitiateMultipartUploadResult>";
    if (strncmp(request, "POST", 4) != 0)
        return "";
    atomic_store(&service.holds, true);
    while (!atomic_load(&service.goes_on) && !atomic_load(&service.ends))
        (void)poll(NULL, 0, 1);
    return "<CompleteMultipartUploadResult><ETag>\"e\"</ETag>"
           "</CompleteMultipartUploadResult>";
}

/* Reads a header and its body, and answers. */
static void serve_one(int fd)
{
    static char text[65536];
    size_t n = 0, want = 0;
    char *end = NULL, *length;
    const char *body, *status;

    while (n + 1 < sizeof text && (!end || n < want)) {
        const ssize_t got = read(fd, text + n, sizeof text - 1 - n);

        if (got <= 0)
            return;
        n += (size_t)got;
        text[n] = '\0';
        end = strstr(text, "\r\n\r\n");
        length = strstr(text, "Content-Length: ");
        if (end)
            want = (size_t)(end - text) + 4 +
                   (length ? strtoul(length + strlen("Content-Length: "), NULL, 10) : 0);
    }
    status = choose_answer(text);
    body = choose_body(text);
    dprintf(fd,
            "HTTP/1.1 %s\r\nETag: \"e\"\r\nContent-Length: %zu\r\nConnection: "
            "close\r\n\r\n%s",
            status, strlen(body), body);
}

static void *serve(void *unused)
{
    struct pollfd came = {.fd = service.fd, .events = POLLIN};

    (void)unused;
    while (!atomic_load(&service.ends)) {
        int fd;

        if (poll(&came, 1, 10) <= 0)
            continue;
        fd = accept(service.fd, NULL, NULL);
        if (fd < 0)
            continue;
        serve_one(fd);
        close(fd);
    }
    return NULL;
}

static void begin_service(void)
{
    char endpoint[64];
    zarr_error err;

    atomic_store(&service.ends, false);
    atomic_store(&service.holds, false);
    atomic_store(&service.goes_on, false);
    atomic_store(&service.n_probes, 0);
    service.fd = start_server(endpoint);
    assert_int_equal(zr_thread_start(&service.thread, serve, NULL, &err), ZARR_OK);
    open_store(&env, endpoint);
}

static void end_service(void)
{
    atomic_store(&service.ends, true);
    zr_thread_join(&service.thread);
    close(service.fd);
}

/* ---- a doubtful probe ---- */

static void expect_doubt(int n_probes)
{
    zarr_store_op op = {.verb = ZARR_STORE_PUT,
                        .flags = ZARR_STORE_OP_IF_VERSION,
                        .key = "zarr.json",
                        .mem = {.device_type = ZARR_DEVICE_CPU}};
    zarr_error err = {0};

    assert_int_equal(zarr_store_run(store, &op, &err), ZARR_ERR_UNSUPPORTED);
    if (!strstr(err.message, "3 probes did not show"))
        fail_msg("%s", err.message);
    assert_int_equal(atomic_load(&service.n_probes), n_probes);
}

static void test_a_doubtful_probe_counts_for_a_while(void **state)
{
    const uint64_t usual = atomic_load(&zr_s3_doubt_ns);

    (void)state;
    service.refuses_right = true;
    begin_service();
    atomic_store(&zr_s3_doubt_ns, UINT64_C(1) << 60);
    expect_doubt(3);
    expect_doubt(3);
    end_service();
    zarr_store_free(store);
    begin_service(); /* another place */
    atomic_store(&zr_s3_doubt_ns, 0);
    expect_doubt(3);
    expect_doubt(6);
    atomic_store(&zr_s3_doubt_ns, usual);
    end_service();
    service.refuses_right = false;
}

/* ---- a write that a reactor submits ---- */

static bool was_reactor;

static void submit_another(void *arg, zarr_store_op *op, const zarr_error *err)
{
    struct write *w = arg;

    (void)op;
    (void)err;
    was_reactor = zr_net_is_reactor();
    zarr_store_submit(store, w->ops, 1, write_done, w);
}

/* A task starts it, as it waits for a probe. */
static void test_a_write_of_a_reactor(void **state)
{
    struct write w = {.op = {.verb = ZARR_STORE_PUT,
                             .flags = ZARR_STORE_OP_IF_VERSION,
                             .key = "second",
                             .mem = {.device_type = ZARR_DEVICE_CPU}}};
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT, .key = "first", .mem = {.device_type = ZARR_DEVICE_CPU}};
    zarr_store_op *ops[] = {&op};

    (void)state;
    w.ops[0] = &w.op;
    begin_service();
    zarr_store_submit(store, ops, 1, submit_another, &w);
    while (!atomic_load(&w.has_ended))
        (void)poll(NULL, 0, 1);
    assert_true(was_reactor);
    assert_int_equal(op.status, ZARR_OK);
    assert_int_equal(w.op.status, ZARR_ERR_CONFLICT); /* the service says 412 */
    assert_int_equal(atomic_load(&service.n_probes), 1);
    end_service();
}

/* ---- the joining of parts ---- */

static uint64_t find_stall_s(void)
{
    uint64_t stall_s = 0;

    zr_mutex_lock(&zr_net_engine.mutex);
    for (uint32_t i = 0; i < atomic_load(&zr_net_engine.n_reactors); i++)
        for (struct zr_net_transfer *t = zr_net_engine.reactor[i].active.first; t;
             t = t->next)
            stall_s = zr_net_stall_s(t);
    zr_mutex_unlock(&zr_net_engine.mutex);
    return stall_s;
}

static void *commit_main(void *arg)
{
    zarr_error err = {0};

    assert_int_equal(zarr_store_run(store, arg, &err), ZARR_OK);
    return NULL;
}

/* The service may work in silence for five times as long as it may otherwise. */
static void test_the_joining_of_parts_may_be_silent(void **state)
{
    char byte = 'x';
    zarr_store_op op = {
        .verb = ZARR_STORE_PUT_PART,
        .key = "k",
        .part = 1,
        .mem = {.device_type = ZARR_DEVICE_CPU, .handle = &byte, .bytes = 1}};
    zr_thread thread;
    zarr_error err = {0};

    (void)state;
    begin_service();
    assert_int_equal(zarr_store_begin_parts(&op.parts, store, "k", NULL, NULL, &err),
                     ZARR_OK);
    assert_int_equal(zarr_store_run(store, &op, &err), ZARR_OK);
    op.verb = ZARR_STORE_PUT;
    op.flags = ZARR_STORE_OP_IN_PARTS;
    op.mem = (zarr_memory){.device_type = ZARR_DEVICE_CPU};
    op.length = 1;
    assert_int_equal(zr_thread_start(&thread, commit_main, &op, &err), ZARR_OK);
    while (!atomic_load(&service.holds))
        (void)poll(NULL, 0, 1);
    assert_int_equal(find_stall_s(), 5 * ZR_NET_STALL_S);
    atomic_store(&service.goes_on, true);
    zr_thread_join(&thread);
    zarr_store_end_parts(store, "k", op.parts);
    end_service();
}

/* ---- the metadata server ---- */

/* What libcurl is told about the time to connect, once for each try. */
static struct {
    CURLcode (*set)(CURL *, CURLoption, ...);
    atomic_int n;
    atomic_long ms[8];
} connects;

static CURLcode note_option(CURL *easy, CURLoption option, ...)
{
    CURLcode code;
    va_list args;
    long number;

    va_start(args, option);
    if (option >= CURLOPTTYPE_OFF_T && option < CURLOPTTYPE_BLOB) {
        code = connects.set(easy, option, va_arg(args, curl_off_t));
    } else if (option >= CURLOPTTYPE_FUNCTIONPOINT) {
        code = connects.set(easy, option, va_arg(args, void (*)(void)));
    } else if (option >= CURLOPTTYPE_OBJECTPOINT) {
        code = connects.set(easy, option, va_arg(args, void *));
    } else {
        number = va_arg(args, long);
        if (option == CURLOPT_CONNECTTIMEOUT_MS)
            atomic_store(&connects.ms[atomic_fetch_add(&connects.n, 1) % 8], number);
        code = connects.set(easy, option, number);
    }
    va_end(args);
    return code;
}

static char metadata_url[64];

static const char *instance_variable(const char *name)
{
    return strcmp(name, "AWS_EC2_METADATA_SERVICE_ENDPOINT") == 0 ? metadata_url : NULL;
}

/* A second to connect, two tries. The port refuses at once, so nothing depends on time.
 */
static void test_the_metadata_server_is_tried_twice(void **state)
{
    const struct zr_net_options net = {.connect_ms = 5000, .tries = 7};
    struct zr_s3_profiles none = {.config = {0}};
    const struct zr_s3_keys_options o = {.region = "us-east-1",
                                         .variable = instance_variable,
                                         .profiles = &none,
                                         .net = &net};
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    struct zr_s3_keys k = {.alloc = NULL};
    zarr_error err = {0};
    const int fd = socket(AF_INET, SOCK_STREAM, 0); /* it does not listen */

    (void)state;
    assert_int_equal(bind(fd, (struct sockaddr *)&at, bytes), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &bytes), 0);
    snprintf(metadata_url, sizeof metadata_url, "http://127.0.0.1:%d",
             ntohs(at.sin_port));
    assert_int_equal(zr_s3_keys_init(&k, &o, &env, &err), ZARR_OK);
    assert_int_equal(k.origin.source, ZR_S3_INSTANCE);
    connects.set = zr_curl.easy_setopt;
    zr_curl.easy_setopt = note_option;
    assert_int_not_equal(zr_s3_keys_renew(&k, NULL, &err), ZARR_OK);
    zr_curl.easy_setopt = connects.set;
    assert_int_equal(atomic_load(&connects.n), 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(atomic_load(&connects.ms[i]), 1000);
    zr_s3_keys_deinit(&k);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_cancel_of_a_waiter, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_cancel_before_the_request, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_doubtful_probe_counts_for_a_while, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_a_write_of_a_reactor, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_joining_of_parts_may_be_silent, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_the_metadata_server_is_tried_twice, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
