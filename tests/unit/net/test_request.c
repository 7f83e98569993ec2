/*
 * unit/net/test_request.c - requests, and each fault that a server can make: what is
 * repeated, what is an error, and that no error has a secret.
 */
#include "unit/net/net_test.h"

#include "net/curl_int.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    DEAF_QUEUED = 8 /* connections that fill the queue of a socket */
};

static struct zr_net *net;
static struct trial *t;
static const char *server, *other;

static int setup(void **state)
{
    server = getenv("ZR_SERVER");
    other = getenv("ZR_SERVER_2");
    (void)skip_without_server(state);
    net = test_client(NULL);
    t = calloc(1, sizeof *t);
    return t ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    zr_net_free(net);
    free(t);
    return 0;
}

static void set_range(uint64_t first, uint64_t bytes)
{
    t->r.flags |= ZR_NET_RANGE;
    t->r.range_first = first;
    t->r.range_bytes = bytes;
}

static void run_ok(uint32_t status)
{
    if (trial_run(t, net) != ZARR_OK)
        fail_msg("%s", t->err.message);
    assert_int_equal(t->r.answer.status, status);
}

static void end(void)
{
    zr_net_request_deinit(&t->r);
}

/* The request fails, and the text names the cause. */
static void expect_failure(zarr_status st, const char *cause)
{
    assert_int_equal(trial_run(t, net), st);
    if (!strstr(t->err.message, cause))
        fail_msg("\"%s\" lacks \"%s\"", t->err.message, cause);
    end();
}

static void test_get(void **state)
{
    (void)state;
    trial_init(t, server, "/100000");
    run_ok(200);
    trial_check(t, 0, 100000);
    assert_int_equal(t->r.answer.total, 100000);
    assert_string_equal(t->r.answer.etag, "\"100000\"");
    end();
    trial_init(t, server, "/100000");
    set_range(70000, 5000);
    run_ok(206);
    trial_check(t, 70000, 5000);
    assert_int_equal(t->r.answer.total, 100000);
    end();
    trial_init(t, server, "/100000");
    set_range(99000, 5000); /* beyond the end */
    run_ok(206);
    trial_check(t, 99000, 1000);
    end();
    trial_init(t, server, "/100000");
    t->r.flags = ZR_NET_SUFFIX;
    t->r.range_bytes = 10;
    run_ok(206);
    trial_check(t, 99990, 10);
    end();
    trial_init(t, server, "/100");
    set_range(100, 1);
    run_ok(416);
    assert_int_equal(t->r.answer.total, 100);
    end();
    trial_init(t, server, "/100");
    t->r.method = "HEAD";
    run_ok(200);
    assert_true(t->r.answer.length == 100 && t->buffer.n == 0);
    end();
    trial_init(t, server, "/100000?chunked=1");
    run_ok(200);
    trial_check(t, 0, 100000);
    assert_true(t->r.answer.is_chunked && t->r.answer.total == UINT64_MAX);
    end();
    trial_init(t, server, "/0");
    run_ok(200);
    assert_int_equal(t->buffer.n, 0);
    end();
}

static void test_statuses(void **state)
{
    static const struct {
        uint32_t status;
        zarr_status st;
    } cases[] = {{404, ZARR_ERR_NOT_FOUND}, {410, ZARR_ERR_NOT_FOUND},
                 {401, ZARR_ERR_DENIED},    {403, ZARR_ERR_DENIED},
                 {412, ZARR_ERR_CONFLICT},  {400, ZARR_ERR_IO},
                 {501, ZARR_ERR_IO}};
    struct zr_str body;

    (void)state;
    zr_str_init(&body, NULL);
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        zarr_error err = {0};

        trial_init(t, server, "/9?status=%u&key=secret", cases[i].status);
        t->r.error_body = &body;
        run_ok(cases[i].status);
        assert_non_null(strstr(zr_str_text(&body), "an answer of status"));
        assert_int_equal(t->buffer.n, 0);
        assert_int_equal(zr_net_fail_status(&err, &t->r), cases[i].st);
        assert_null(strstr(err.message, "secret"));
        assert_int_equal(err.os_code, cases[i].status);
        assert_int_equal(err.os_domain, ZARR_OS_STORE);
        end();
    }
    zr_str_deinit(&body);
}

static void test_repeats(void **state)
{
    static const char *const faults[] = {"status=429",
                                         "status=500",
                                         "status=502",
                                         "status=503",
                                         "status=504",
                                         "status=408",
                                         "status=503&retry_after=0",
                                         "status=503&retry_date=1",
                                         "reset=-1",
                                         "reset=0",
                                         "reset=70000",
                                         "close=70000",
                                         "close=0",
                                         "lost=1"};
    struct zr_net_stats before, after;

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(faults); i++) {
        zr_net_stats_get(net, &before);
        trial_init(t, server, "/100000?id=repeat%zu&times=2&%s", i, faults[i]);
        if (i % 2)
            set_range(1000, 90000);
        run_ok(i % 2 ? 206 : 200);
        trial_check(t, i % 2 ? 1000 : 0, i % 2 ? 90000 : 100000);
        end();
        zr_net_stats_get(net, &after);
        assert_int_equal(after.retries - before.retries, 2);
        assert_int_equal(after.requests - before.requests, 3);
        assert_true(after.in_bytes - before.in_bytes >= 90000);
    }
}

static void test_gives_up(void **state)
{
    struct zr_net_options o = test_options();
    struct zr_net *few;

    (void)state;
    o.tries = 3;
    few = test_client(&o);
    trial_init(t, server, "/9?id=always&status=503");
    assert_int_equal(trial_run(t, few), ZARR_OK);
    assert_int_equal(t->r.answer.status, 503);
    end();
    assert_int_equal(server_count(net, "always"), 3);
    trial_init(t, server, "/9?lost=1");
    assert_int_equal(trial_run(t, few), ZARR_ERR_IO);
    end();
    trial_init(t, server, "/9?status=503&id=far&retry_after=100000"); /* too far away */
    assert_int_equal(trial_run(t, few), ZARR_OK);
    assert_int_equal(t->r.answer.status, 503);
    end();
    assert_int_equal(server_count(net, "far"), 1);
    trial_init(t, "http://127.0.0.1:1", "/9");
    assert_int_equal(trial_run(t, few), ZARR_ERR_IO);
    assert_non_null(strstr(t->err.message, "refused"));
    end();
    zr_net_free(few);
}

/* A port of loopback that answers no attempt to connect: its queue is full. */
static int listen_deaf(char *url, size_t cap, int queued[DEAF_QUEUED])
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
    assert_int_equal(listen(fd, 0), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
    for (int i = 0; i < DEAF_QUEUED; i++) {
        queued[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
        assert_true(queued[i] >= 0);
        (void)connect(queued[i], (struct sockaddr *)&a, n);
    }
    (void)snprintf(url, cap, "http://127.0.0.1:%u", ntohs(a.sin_port));
    return fd;
}

static uint64_t count_sent(struct zr_net *one)
{
    struct zr_net_stats s;

    zr_net_stats_get(one, &s);
    return s.requests;
}

/* The text names the option whose time is over. */
static void test_timeouts(void **state)
{
    struct zr_net_options o = test_options();
    int queued[DEAF_QUEUED], fd;
    struct zr_net *one;
    char url[64];

    (void)state;
    o.connect_ms = 300;
    o.tries = 2;
    one = test_client(&o);
    fd = listen_deaf(url, sizeof url, queued);
    trial_init(t, url, "/9?key=hidden");
    assert_int_equal(trial_run(t, one), ZARR_ERR_IO);
    if (!strstr(t->err.message, url) || strstr(t->err.message, "hidden") ||
        !strstr(t->err.message, "no connection within 300 ms (option connect_ms)"))
        fail_msg("%s", t->err.message);
    end();
    assert_int_equal(count_sent(one), 2);
    for (int i = 0; i < DEAF_QUEUED; i++)
        (void)close(queued[i]);
    (void)close(fd);
    trial_init(t, server, "/100000?stall=500");
    assert_int_equal(trial_run(t, one), ZARR_ERR_IO);
    if (!strstr(t->err.message, "no byte came for 1 s (option stall_s)"))
        fail_msg("%s", t->err.message);
    end();
    /* the whole request takes longer than both together */
    trial_init(t, server, "/8000?rate=4000");
    assert_int_equal(trial_run(t, one), ZARR_OK);
    trial_check(t, 0, 8000);
    end();
    zr_net_free(one);
}

/* A request that changes something is sent once, unless the caller permits more. */
static void test_unsafe(void **state)
{
    static const char body[] = "the body";

    (void)state;
    trial_init(t, server, "/9?id=put1&lost=1");
    t->r.method = "PUT";
    t->r.body = body;
    t->r.body_bytes = sizeof body - 1;
    assert_int_equal(trial_run(t, net), ZARR_ERR_IO);
    end();
    assert_int_equal(server_count(net, "put1"), 1);
    trial_init(t, server, "/9?id=put2&status=503");
    t->r.method = "PUT";
    run_ok(503);
    end();
    assert_int_equal(server_count(net, "put2"), 1);
    trial_init(t, server, "/9?id=put3&lost=1&times=1");
    t->r.method = "PUT";
    t->r.body = body;
    t->r.body_bytes = sizeof body - 1;
    t->r.flags = ZR_NET_REPEATABLE;
    run_ok(200);
    end();
    assert_int_equal(server_count(net, "put3"), 2);
    trial_init(t, server, "/9?echo=1");
    t->r.method = "PUT";
    t->r.body = body;
    t->r.body_bytes = sizeof body - 1;
    run_ok(200);
    t->bytes[t->buffer.n] = '\0';
    assert_non_null(strstr((char *)t->bytes, "PUT /9"));
    assert_non_null(strstr((char *)t->bytes, "the body"));
    assert_null(strstr((char *)t->bytes, "Expect"));
    assert_null(strstr((char *)t->bytes, "urlencoded"));
    assert_non_null(strstr((char *)t->bytes, "Accept-Encoding: identity"));
    end();
}

static void test_wrong_answers(void **state)
{
    static const struct {
        const char *query, *cause;
        bool ranged;
    } cases[] = {{"range=bytes 0-9/100", "another range", true},
                 {"range=bytes 10-18/100", "contradicts", true},
                 {"chunked=1&range=bytes 10-18/100", "another range", true},
                 {"range=rubbish", "wrong Content-Range", true},
                 {"chunked=1&range=bytes 10-29/15", "wrong Content-Range", true},
                 {"encoding=gzip", "Content-Encoding \"gzip\"", false},
                 {"bare=1", "no Content-Length", false},
                 {"headers=1000", "too long", false},
                 {"endless=1", "too long", false},
                 {"informs=-1", "too long", false},
                 {"header=X:%01", "control character", false},
                 {"length=5000000", "at most", false},
                 {"header=Content-Encoding:br", "Content-Encoding \"br\"", false}};

    (void)state;
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        char query[256];
        size_t n = 0;

        for (const char *c = cases[i].query; *c; c++) {
            query[n++] = *c == ' ' ? '+' : *c;
            query[n] = '\0';
        }
        trial_init(t, server, "/100?%s", query);
        if (cases[i].ranged)
            set_range(10, 10);
        expect_failure(ZARR_ERR_IO, cases[i].cause);
    }
    /* a value of unknown length: its end cannot be told from a range that was cut */
    trial_init(t, server, "/100?range=bytes+10-19/*");
    set_range(10, 10);
    run_ok(206);
    trial_check(t, 10, 10);
    assert_int_equal(t->r.answer.total, UINT64_MAX);
    end();
    trial_init(t, server, "/100?range=bytes+90-99/*");
    set_range(90, 20);
    expect_failure(ZARR_ERR_IO, "another range");
    trial_init(t, server, "/100?whole=1"); /* the caller sees that it is all */
    set_range(10, 10);
    run_ok(200);
    assert_false(t->r.answer.is_range);
    end();
    trial_init(t, server, "/100000?chunked=1");
    t->r.max_bytes = 5000;
    expect_failure(ZARR_ERR_LIMIT, "more bytes");
    trial_init(t, server, "/100000");
    t->r.max_bytes = 5000;
    expect_failure(ZARR_ERR_LIMIT, "100000 bytes");
    trial_init(t, server, "/100?informs=3");
    run_ok(200);
    trial_check(t, 0, 100);
    end();
}

/* ---- redirects ---- */

static void test_redirects(void **state)
{
    (void)state;
    trial_init(t, server, "/9?to=/50");
    run_ok(200);
    trial_check(t, 0, 50);
    end();
    trial_init(t, server, "/9?status=308&to=%s/50", other);
    set_range(5, 7);
    run_ok(206);
    trial_check(t, 5, 7);
    end();
    trial_init(t, server, "/9?to=/9?to=/9?to=/9"); /* its own query is cut: relative */
    run_ok(200);
    end();
    trial_init(t, server,
               "/9?id=loop&to=%%3Fid%%3Dloop%%26to%%3D%%2F9%%253Fto%%253D%%2F9");
    assert_int_equal(trial_run(t, net), ZARR_OK);
    end();
    trial_init(t, server, "/9?to=ftp://127.0.0.1/x");
    expect_failure(ZARR_ERR_IO, "neither http nor https");
    trial_init(t, server, "/9?to=http://");
    expect_failure(ZARR_ERR_IO, "no URL");
    trial_init(t, server, "/9?status=302"); /* no Location: the caller decides */
    run_ok(302);
    end();
    trial_init(t, server, "/9?to=/9"); /* nor does a request that wants none */
    t->r.flags = ZR_NET_NO_REDIRECT;
    run_ok(302);
    end();
    trial_init(t, server, "/9?to=/9"); /* a PUT goes nowhere else */
    t->r.method = "PUT";
    run_ok(302);
    end();
}

static void test_redirect_limit(void **state)
{
    struct zr_net_stats before, after;

    (void)state;
    trial_init(t, server, "/50?hops=%d", ZR_NET_REDIRECTS);
    run_ok(200);
    trial_check(t, 0, 50);
    end();
    zr_net_stats_get(net, &before);
    trial_init(t, server, "/50?hops=1000");
    expect_failure(ZARR_ERR_IO, "more than 5 redirects");
    zr_net_stats_get(net, &after);
    assert_int_equal(after.requests - before.requests, ZR_NET_REDIRECTS + 1);
}

static bool echo_has(const char *text)
{
    t->bytes[t->buffer.n] = '\0';
    return strstr((char *)t->bytes, text) != NULL;
}

/* Secrets go to the first origin only, and do not come back. */
static void test_secrets(void **state)
{
    const char *const secret[] = {"X-Token: tokenvalue", NULL};
    const char *const plain[] = {"X-Plain: plainvalue", NULL};
    const char *const client[] = {"Cookie: cookievalue", NULL};
    struct zr_net_options o = test_options();
    struct zr_net *signs;

    (void)state;
    o.secret_headers = client;
    o.user_password = "name:passwordvalue";
    signs = test_client(&o);
    for (int i = 0; i < 3; i++) {
        trial_init(t, server,
                   i == 0   ? "/9?echo=1"
                   : i == 1 ? "/9?to=/9%%3Fecho%%3D1"
                            : "/9?to=%s/9%%3Fecho%%3D1",
                   other);
        t->r.headers = plain;
        t->r.secret_headers = secret;
        assert_int_equal(trial_run(t, signs), ZARR_OK);
        assert_true(echo_has("X-Plain: plainvalue"));
        assert_int_equal(echo_has("X-Token: tokenvalue"), i < 2);
        assert_int_equal(echo_has("Cookie: cookievalue"), i < 2);
        assert_int_equal(echo_has("Authorization: Basic"), i < 2);
        end();
    }
    /* there and back again */
    trial_init(t, server, "/9?to=%s/9%%3Fto%%3D%s/9%%253Fecho%%253D1", other, server);
    t->r.secret_headers = secret;
    assert_int_equal(trial_run(t, signs), ZARR_OK);
    assert_true(echo_has("GET /9?echo=1"));
    assert_false(echo_has("X-Token"));
    assert_false(echo_has("Authorization"));
    end();
    zr_net_free(signs);
    /* of the URL */
    trial_init(t, "http://me:pass%40word@", "%s/9?echo=1", server + strlen("http://"));
    run_ok(200);
    assert_true(echo_has("Authorization: Basic bWU6cGFzc0B3b3Jk"));
    end();
    trial_init(t, "http://me:password@", "%s/9?key=hidden&encoding=gzip",
               server + strlen("http://"));
    assert_int_equal(trial_run(t, net), ZARR_ERR_IO);
    assert_null(strstr(t->err.message, "password"));
    assert_null(strstr(t->err.message, "hidden"));
    end();
}

/* ---- headers of a try ---- */

static zarr_status count_tries(void *user, struct zr_net_request *r, struct zr_str *lines,
                               zarr_error *err)
{
    unsigned *n = user;

    assert_ptr_equal(r, &t->r);
    zr_str_printf(lines, "X-Try: %u", ++*n);
    zr_str_putc(lines, '\0');
    zr_str_append(lines, "X-Same: yes", sizeof "X-Same: yes");
    return *n < 9 ? ZARR_OK : zr_fail(err, ZARR_ERR_DENIED, "no more signatures");
}

static void test_headers_of_each_try(void **state)
{
    unsigned n = 0;

    (void)state;
    trial_init(t, server, "/9?id=try&times=2&status=503");
    t->r.add_headers = count_tries;
    t->r.header_user = &n;
    run_ok(200);
    end();
    assert_int_equal(n, 3);
    trial_init(t, server, "/9?echo=1");
    t->r.add_headers = count_tries;
    t->r.header_user = &n;
    run_ok(200);
    assert_true(echo_has("X-Try: 4\r\nX-Same: yes"));
    end();
    trial_init(t, server, "/9?to=%s/9%%3Fecho%%3D1", other); /* another origin */
    t->r.add_headers = count_tries;
    t->r.header_user = &n;
    run_ok(200);
    assert_false(echo_has("X-Same"));
    end();
    n = 8;
    trial_init(t, server, "/9");
    t->r.add_headers = count_tries;
    t->r.header_user = &n;
    expect_failure(ZARR_ERR_DENIED, "no more signatures");
}

/* Each method has them. */
static void test_credentials(void **state)
{
    static const char *const methods[] = {"GET", "PROPFIND", "PUT", "DELETE", "OPTIONS"};
    const char *const secret[] = {"X-Token: tokenvalue", NULL};
    struct zr_net_options o = test_options();
    struct zr_net *signs;

    (void)state;
    o.user_password = "name:passwordvalue";
    o.secret_headers = secret;
    signs = test_client(&o);
    for (size_t i = 0; i < ZR_COUNT(methods); i++) {
        trial_init(t, server, "/9?echo=1");
        t->r.method = methods[i];
        assert_int_equal(trial_run(t, signs), ZARR_OK);
        assert_true(echo_has(methods[i]));
        assert_true(echo_has("Authorization: Basic bmFtZTpwYXNzd29yZHZhbHVl"));
        assert_true(echo_has("X-Token: tokenvalue"));
        end();
    }
    zr_net_free(signs);
}

static void test_proxy(void **state)
{
    struct zr_net_options o = test_options();
    struct zr_net *one;

    (void)state;
    o.proxy = server; /* it takes any host's URL for its own */
    one = test_client(&o);
    trial_init(t, "http://host.invalid", "/1000");
    assert_int_equal(trial_run(t, one), ZARR_OK);
    trial_check(t, 0, 1000);
    end();
    zr_net_free(one);
    o.untrusted = true; /* the proxy hides the address of the other server */
    one = test_client(&o);
    trial_init(t, "http://host.invalid", "/9?to=http://other.invalid/9");
    assert_int_equal(trial_run(t, one), ZARR_ERR_IO);
    assert_non_null(strstr(t->err.message, "proxy hides"));
    end();
    trial_init(t, "http://host.invalid", "/9?to=/50");
    assert_int_equal(trial_run(t, one), ZARR_OK);
    end();
    zr_net_free(one);
    o.untrusted = false;
    o.no_proxy = "host.invalid";
    o.tries = 1;
    one = test_client(&o);
    trial_init(t, "http://host.invalid", "/1000");
    assert_int_equal(trial_run(t, one), ZARR_ERR_IO);
    end();
    zr_net_free(one);
}

/* A proxy that refuses a connection to the server. */
static void test_proxy_refuses(void **state)
{
    static const struct {
        uint32_t status;
        zarr_status st;
        uint64_t tries;
    } cases[] = {{401, ZARR_ERR_DENIED, 1},
                 {403, ZARR_ERR_DENIED, 1},
                 {407, ZARR_ERR_DENIED, 1},
                 {404, ZARR_ERR_IO, 1},
                 {503, ZARR_ERR_IO, 3}};
    struct zr_net_options o = test_options();
    struct zr_net *one;

    (void)state;
    o.proxy = server;
    o.tries = 3;
    one = test_client(&o);
    for (size_t i = 0; i < ZR_COUNT(cases); i++) {
        const uint64_t before = server_count(net, "requests");
        char text[64];

        trial_init(t, "https://", "%u.invalid/9?key=hidden", cases[i].status);
        assert_int_equal(trial_run(t, one), cases[i].st);
        (void)snprintf(text, sizeof text, "the proxy answered %u", cases[i].status);
        if (!strstr(t->err.message, text) || strstr(t->err.message, "hidden"))
            fail_msg("%s", t->err.message);
        end();
        /* with the one of the count before */
        assert_int_equal(server_count(net, "requests") - before - 1, cases[i].tries);
    }
    zr_net_free(one);
}

/* The file of an option, and ~/.netrc. */
static void test_netrc(void **state)
{
    char folder[] = "/tmp/zr_net_netrc_XXXXXX", name[64];
    struct zr_net_options o = test_options();
    struct zr_net *one;
    int fd;

    (void)state;
    assert_non_null(mkdtemp(folder));
    (void)snprintf(name, sizeof name, "%s/.netrc", folder);
    fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_true(dprintf(fd, "machine 127.0.0.1 login me password secret\n") > 0);
    (void)close(fd);
    assert_int_equal(setenv("HOME", folder, 1), 0);
    for (int i = 0; i < 6; i++) {
        o.netrc_file = i / 2 == 0 ? name : NULL; /* that is enough */
        o.netrc = i / 2 == 1;
        one = test_client(&o);
        trial_init(t, server, i % 2 ? "/9?to=%s/9%%3Fecho%%3D1" : "/9?echo=1", other);
        assert_int_equal(trial_run(t, one), ZARR_OK);
        assert_int_equal(echo_has("Authorization: Basic bWU6c2VjcmV0"),
                         i % 2 == 0 && i / 2 < 2);
        end();
        zr_net_free(one);
    }
    assert_int_equal(unlink(name) + rmdir(folder), 0);
}

static void test_invalid(void **state)
{
    const char *const split[] = {"X: a\r\nY: b", NULL};
    struct zr_net_options o = test_options();
    struct zr_net *none = NULL;

    (void)state;
    trial_init(t, "ftp://h", "/x");
    expect_failure(ZARR_ERR_INVALID, "neither http nor https");
    trial_init(t, "no url", "%s", "");
    expect_failure(ZARR_ERR_INVALID, "malformed");
    trial_init(t, server, "/9");
    t->r.headers = split;
    expect_failure(ZARR_ERR_INVALID, "control character");
    trial_init(t, server, "/9");
    set_range(5, 0);
    expect_failure(ZARR_ERR_INVALID, "range");
    o.secret_headers = split;
    assert_int_equal(zr_net_open(&none, &o, NULL), ZARR_ERR_INVALID);
    assert_null(none);
}

/* ---- sinks, TLS ---- */

static zarr_status refuse_begin(void *user, const struct zr_net_answer *a,
                                zarr_error *err)
{
    (void)user;
    (void)a;
    return zr_fail(err, ZARR_ERR_CONFLICT, "the sink refuses");
}

/* A connection that ends while something is sent does not end the process. */
static zarr_status check_signals(void *user, const struct zr_net_answer *a,
                                 zarr_error *err)
{
    sigset_t blocked;

    (void)user;
    (void)a;
    if (!zr_net_is_reactor() || pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0 ||
        sigismember(&blocked, SIGPIPE) != 1)
        return zr_fail(err, ZARR_ERR_INTERNAL, "SIGPIPE is not blocked here");
    return ZARR_OK;
}

static zarr_status refuse_write(void *user, const void *bytes, size_t n, zarr_error *err)
{
    (void)user;
    (void)bytes;
    (void)n;
    return zr_fail(err, ZARR_ERR_NO_MEMORY, "the sink is full");
}

static void test_sink(void **state)
{
    (void)state;
    trial_init(t, server, "/100000");
    t->r.sink.begin = refuse_begin;
    expect_failure(ZARR_ERR_CONFLICT, "the sink refuses");
    trial_init(t, server, "/100000");
    t->r.sink.begin = check_signals;
    run_ok(200);
    end();
    trial_init(t, server, "/100000");
    t->r.sink.write = refuse_write;
    expect_failure(ZARR_ERR_NO_MEMORY, "the sink is full");
    trial_init(t, server, "/100000");
    t->buffer.cap = 99999;
    expect_failure(ZARR_ERR_IO, "expected 99999");
    trial_init(t, server, "/100000");
    t->r.sink = (struct zr_net_sink){0};
    run_ok(200);
    end();
}

static void count_warnings(void *user, uint32_t level, const char *text)
{
    unsigned *n = user;

    *n += level == ZARR_LOG_WARN && strstr(text, "not verified");
}

static void test_tls(void **state)
{
    unsigned n_warnings = 0;
    const char *const tls = server_url("ZR_SERVER_TLS");
    struct zr_net_options o = test_options();
    struct zr_net *one;

    (void)state;
    trial_init(t, tls, "/9");
    assert_int_equal(trial_run(t, net), ZARR_ERR_IO);
    end();
    o.ca_file = getenv("ZR_SERVER_CA");
    one = test_client(&o);
    trial_init(t, tls, "/100000");
    assert_int_equal(trial_run(t, one), ZARR_OK);
    trial_check(t, 0, 100000);
    end();
    trial_init(t, tls, "/9?to=%s/9", server);
    assert_int_equal(trial_run(t, one), ZARR_ERR_IO);
    assert_non_null(strstr(t->err.message, "from https to http"));
    end();
    zr_net_free(one);
    o.ca_file = NULL;
    o.tls_unverified = true;
    o.log = (struct zr_log){count_warnings, &n_warnings, ZARR_LOG_WARN};
    one = test_client(&o);
    assert_int_equal(n_warnings, 1);
    trial_init(t, tls, "/9");
    assert_int_equal(trial_run(t, one), ZARR_OK);
    end();
    zr_net_free(one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_get),
                                       cmocka_unit_test(test_statuses),
                                       cmocka_unit_test(test_repeats),
                                       cmocka_unit_test(test_gives_up),
                                       cmocka_unit_test(test_timeouts),
                                       cmocka_unit_test(test_proxy_refuses),
                                       cmocka_unit_test(test_credentials),
                                       cmocka_unit_test(test_unsafe),
                                       cmocka_unit_test(test_wrong_answers),
                                       cmocka_unit_test(test_redirects),
                                       cmocka_unit_test(test_redirect_limit),
                                       cmocka_unit_test(test_secrets),
                                       cmocka_unit_test(test_headers_of_each_try),
                                       cmocka_unit_test(test_proxy),
                                       cmocka_unit_test(test_netrc),
                                       cmocka_unit_test(test_invalid),
                                       cmocka_unit_test(test_sink),
                                       cmocka_unit_test(test_tls)};

    return cmocka_run_group_tests(tests, setup, teardown);
}
