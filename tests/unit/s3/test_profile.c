/*
 * unit/s3/test_profile.c - the files ~/.aws/config and ~/.aws/credentials, and where
 * credentials are looked for: no request is sent.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "s3/s3_int.h"

static char folder[] = "/tmp/zr_s3_profile_XXXXXX";
static char credentials[64], config[64];
static zarr_error err;
static const char *const *variables; /* name, value, ..., NULL */

static const char *variable(const char *name)
{
    if (strcmp(name, "AWS_SHARED_CREDENTIALS_FILE") == 0)
        return credentials;
    if (strcmp(name, "AWS_CONFIG_FILE") == 0)
        return config;
    for (size_t i = 0; variables && variables[i]; i += 2)
        if (strcmp(variables[i], name) == 0)
            return variables[i + 1];
    return NULL;
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    (void)snprintf(credentials, sizeof credentials, "%s/credentials", folder);
    (void)snprintf(config, sizeof config, "%s/config", folder);
    write_file(credentials, "\xEF\xBB\xBF[first]\n"
                            "aws_access_key_id=AKHALF\n"
                            "# keys\n"
                            "[default]\n"
                            "aws_access_key_id = AKDEFAULT\n"
                            "aws_secret_access_key=SECRETDEFAULT\r\n"
                            "\n"
                            "[ other ]\n"
                            "aws_access_key_id=AKOTHER\n"
                            "aws_secret_access_key=SECRETOTHER\n"
                            "aws_session_token = TOKENOTHER\n"
                            "[two]\n"
                            "aws_access_key_id=AKTWO\n"
                            "aws_secret_access_key=SECRETTWO\n"
                            "[old]\n"
                            "AWS_Access_Key_Id: AKOLD\n"
                            "aws_secret_access_key : SECRETOLD\n"
                            "[profile odd]\n"
                            "aws_access_key_id=AKWRONG\n"
                            "aws_secret_access_key=SECRETWRONG");
    write_file(config, "[default]\n"
                       "region = eu-west-1\n"
                       "[profile other]\n"
                       "region=us-west-2   \n"
                       "s3 =\n"
                       "  addressing_style = path\n"
                       "  region = nowhere\n"
                       "[other]\n"
                       "region = wrong\n"
                       "[profile role]\n"
                       "role_arn = arn:aws:iam::1:role/r\n"
                       "source_profile = other\n"
                       "[profile run]\n"
                       "credential_process = /bin/echo 1\n"
                       "[profile sso]\n"
                       "sso_session = me\n"
                       "[profile chain]\n"
                       "role_arn = r\n"
                       "credential_source = Ec2InstanceMetadata\n"
                       "[profile two]\n"
                       "aws_access_key_id=AKTHREE\n"
                       "aws_session_token=TOKENTHREE\n"
                       "[profile empty]\n");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(credentials);
    (void)unlink(config);
    return rmdir(folder);
}

/* ---- files ---- */

static void expect(const struct zr_s3_profiles *p, const char *profile, const char *name,
                   const char *expected)
{
    char *value = NULL;

    assert_int_equal(zr_s3_profiles_get(&value, p, profile, name, &err), ZARR_OK);
    if (expected && !value)
        fail_msg("%s of %s is not found", name, profile);
    if (expected)
        assert_string_equal(value, expected);
    else
        assert_null(value);
    zr_free_secret(NULL, value);
}

static void test_files(void **state)
{
    struct zr_s3_profiles p = {.config = {0}};

    (void)state;
    assert_int_equal(zr_s3_profiles_read(&p, NULL, variable, &err), ZARR_OK);
    expect(&p, "default", "aws_access_key_id", "AKDEFAULT");
    expect(&p, "default", "aws_secret_access_key", "SECRETDEFAULT");
    expect(&p, "default", "region", "eu-west-1");
    expect(&p, "default", "aws_session_token", NULL);
    expect(&p, "other", "aws_session_token", "TOKENOTHER");
    expect(&p, "other", "region", "us-west-2"); /* not of [other], nor of s3 */
    expect(&p, "odd", "aws_access_key_id", NULL);
    expect(&p, "nothing", "region", NULL);
    assert_true(zr_s3_profiles_have(&p, "empty") && zr_s3_profiles_have(&p, "other"));
    assert_false(zr_s3_profiles_have(&p, "odd") || zr_s3_profiles_have(&p, "nothing"));
    zr_s3_profiles_deinit(&p);
}

/* ---- where credentials come from ---- */

static zarr_status find(struct zr_s3_keys *k, struct zr_s3_keys_options o)
{
    struct zr_store_env env = {.alloc = NULL};
    const struct zr_net_options net = {.alloc = NULL};
    struct zr_s3_profiles p = {.config = {0}};
    zarr_status st;

    zr_limits_default(&env.limits);
    *k = (struct zr_s3_keys){.alloc = NULL};
    assert_int_equal(zr_s3_profiles_read(&p, NULL, variable, &err), ZARR_OK);
    o.variable = variable;
    o.profiles = &p;
    o.region = "eu-west-1";
    o.net = &net;
    st = zr_s3_keys_init(k, &o, &env, &err);
    zr_s3_profiles_deinit(&p);
    return st;
}

static void expect_key(const struct zr_s3_keys_options *o, const char *id,
                       const char *token)
{
    struct zr_s3_keys k;
    struct zr_s3_key *key;

    if (find(&k, *o) != ZARR_OK)
        fail_msg("%s", err.message);
    key = zr_s3_keys_get(&k);
    assert_non_null(key);
    assert_string_equal(key->id, id);
    assert_int_equal(key->token != NULL, token != NULL);
    if (token)
        assert_string_equal(key->token, token);
    zr_s3_key_free(key);
    zr_s3_keys_deinit(&k);
}

static void expect_source(const struct zr_s3_keys_options *o, enum zr_s3_source source)
{
    struct zr_s3_keys k;
    const zarr_status st = find(&k, *o);

    if (st == ZARR_ERR_UNSUPPORTED && strstr(err.message, "libcurl")) {
        zr_s3_keys_deinit(&k);
        return; /* a build without it */
    }
    if (st != ZARR_OK)
        fail_msg("%s", err.message);
    assert_int_equal(k.origin.source, source);
    zr_s3_keys_deinit(&k);
}

static void expect_refusal(const struct zr_s3_keys_options *o, zarr_status st,
                           const char *text)
{
    struct zr_s3_keys k;

    assert_int_equal(find(&k, *o), st);
    if (!strstr(err.message, text))
        fail_msg("\"%s\" lacks \"%s\"", err.message, text);
    assert_null(strstr(err.message, "SECRET"));
    zr_s3_keys_deinit(&k);
}

static void test_order(void **state)
{
    static const char *const keys[] = {"AWS_ACCESS_KEY_ID",
                                       "AKENV",
                                       "AWS_SECRET_ACCESS_KEY",
                                       "SECRETENV",
                                       "AWS_SESSION_TOKEN",
                                       "",
                                       NULL};
    static const char *const profile[] = {"AWS_PROFILE", "other", NULL};
    struct zr_s3_keys_options o = {.id = NULL};

    (void)state;
    variables = NULL;
    expect_key(&o, "AKDEFAULT", NULL);
    variables = profile;
    expect_key(&o, "AKOTHER", "TOKENOTHER");
    variables = keys;
    expect_key(&o, "AKENV", NULL);
    o.profile = "other"; /* which an option asks for */
    expect_key(&o, "AKOTHER", "TOKENOTHER");
    o.profile = "two"; /* its token in the other file is of another key */
    expect_key(&o, "AKTWO", NULL);
    o.profile = "old";
    expect_key(&o, "AKOLD", NULL);
    o.profile = NULL;
    o.id = "AKOPTION";
    o.secret = "SECRETOPTION";
    o.token = "TOKENOPTION";
    expect_key(&o, "AKOPTION", "TOKENOPTION");
    o.profile = "other";
    expect_refusal(&o, ZARR_ERR_INVALID, "exclude each other");
    o.profile = NULL;
    o.secret = NULL;
    expect_refusal(&o, ZARR_ERR_INVALID, "come together");
    variables = NULL;
}

static void test_sources(void **state)
{
    static const char *const web[] = {"AWS_PROFILE",
                                      "empty",
                                      "AWS_WEB_IDENTITY_TOKEN_FILE",
                                      "/t",
                                      "AWS_ROLE_ARN",
                                      "r",
                                      "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
                                      "/x",
                                      NULL};
    struct zr_s3_keys_options o = {.profile = "role"};

    (void)state;
    expect_source(&o, ZR_S3_ROLE);
    o.profile = "run";
    expect_source(&o, ZR_S3_PROCESS);
    o.profile = "empty";
    expect_source(&o, ZR_S3_INSTANCE);
    o.profile = NULL;
    variables = web;
    expect_source(&o, ZR_S3_WEB_IDENTITY);
    variables = (const char *const[]){
        "AWS_PROFILE", "empty", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x", NULL};
    expect_source(&o, ZR_S3_CONTAINER);
    variables = NULL;
}

static void test_refusals(void **state)
{
    struct zr_s3_keys_options o = {.profile = "sso"};
    struct zr_s3_keys k;

    (void)state;
    expect_refusal(&o, ZARR_ERR_UNSUPPORTED, "sso_session is not supported");
    o.profile = "first";
    expect_refusal(&o, ZARR_ERR_INVALID, "only one of aws_access_key_id");
    o.profile = "chain";
    expect_refusal(&o, ZARR_ERR_UNSUPPORTED, "credential_source");
    o.profile = "nothing";
    expect_refusal(&o, ZARR_ERR_INVALID, "no profile nothing in");
    variables = (const char *const[]){"AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                      "http://example.com/", NULL};
    variables = (const char *const[]){"AWS_PROFILE", "nothing", NULL};
    o.profile = NULL;
    expect_refusal(&o, ZARR_ERR_INVALID, "no profile nothing in");
    variables = (const char *const[]){"AWS_CONTAINER_CREDENTIALS_FULL_URI",
                                      "http://example.com/", NULL};
    o.profile = "empty";
    expect_refusal(&o, ZARR_ERR_DENIED, "AWS_CONTAINER_CREDENTIALS_FULL_URI");
    variables = NULL;
    /* nothing runs, and no metadata server is asked */
    o.untrusted = true;
    o.profile = "run";
    assert_int_equal(find(&k, o), ZARR_OK);
    assert_int_equal(zr_s3_keys_renew(&k, NULL, &err), ZARR_ERR_DENIED);
    assert_non_null(strstr(err.message, "credential_process is not run (untrusted)"));
    assert_non_null(strstr(err.message, "not in metadata servers (untrusted)"));
    zr_s3_keys_deinit(&k);
}

/* ---- files and processes that block ---- */

static void test_files_that_are_none(void **state)
{
    char path[80];
    struct zr_str text;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/pipe", folder);
    assert_int_equal(mkfifo(path, 0600), 0);
    zr_str_init(&text, NULL);
    assert_int_equal(zr_s3_read_file(&text, path, &err), ZARR_ERR_IO);
    assert_int_equal(zr_s3_read_file(&text, "/dev/null/x", &err), ZARR_ERR_NOT_FOUND);
    zr_str_deinit(&text);
    assert_int_equal(unlink(path), 0);
}

struct renewal {
    struct zr_s3_keys *k;
    zarr_cancel *cancel;
    zarr_status st;
};

static void *renew(void *user)
{
    struct renewal *r = user;
    zarr_error said = {0};

    r->st = zr_s3_keys_renew(r->k, r->cancel, &said);
    return NULL;
}

/* The first caller starts a program that closes its output and sleeps; its cancel ends it
 * alone, and the one that waits runs the program again. */
static void test_cancelled_renewal(void **state)
{
    char command[400], mark[80];
    struct zr_s3_keys k;
    struct renewal first = {.k = &k}, second = {.k = &k};
    zr_thread threads[2];
    uint64_t begin;

    (void)state;
    (void)snprintf(mark, sizeof mark, "%s/mark", folder);
    (void)snprintf(command, sizeof command,
                   "[profile slow]\ncredential_process = test -e %s || { touch %s; exec "
                   ">&-; sleep 30; }; echo '{\"Version\": 1, \"AccessKeyId\": \"AK\", "
                   "\"SecretAccessKey\": \"S\"}'\n",
                   mark, mark);
    write_file(config, command);
    assert_int_equal(find(&k, (struct zr_s3_keys_options){.profile = "slow"}), ZARR_OK);
    assert_int_equal(zarr_cancel_create(&first.cancel, NULL), ZARR_OK);
    begin = zr_now_ns();
    assert_int_equal(zr_thread_start(&threads[0], renew, &first, &err), ZARR_OK);
    while (access(mark, F_OK) != 0)
        (void)usleep(1000);
    assert_int_equal(zr_thread_start(&threads[1], renew, &second, &err), ZARR_OK);
    (void)usleep(200000);
    zarr_cancel_set(first.cancel);
    zr_thread_join(&threads[0]);
    zr_thread_join(&threads[1]);
    assert_int_equal(first.st, ZARR_ERR_CANCELLED);
    assert_int_equal(second.st, ZARR_OK);
    assert_true(zr_now_ns() - begin < UINT64_C(20000000000));
    zarr_cancel_free(first.cancel);
    zr_s3_keys_deinit(&k);
    assert_int_equal(unlink(mark), 0);
}

/* While the program of one store hangs, another store gets its key. */
static void test_renewers(void **state)
{
    struct zr_s3_keys slow, quick;

    (void)state;
    write_file(config, "[profile slow]\ncredential_process = sleep 600\n"
                       "[profile quick]\ncredential_process = echo '{\"Version\": 1, "
                       "\"AccessKeyId\": \"AK\", \"SecretAccessKey\": \"S\"}'\n");
    assert_int_equal(find(&slow, (struct zr_s3_keys_options){.profile = "slow"}),
                     ZARR_OK);
    assert_int_equal(find(&quick, (struct zr_s3_keys_options){.profile = "quick"}),
                     ZARR_OK);
    assert_int_equal(zr_s3_keys_ask(&slow, &err), ZARR_OK);
    assert_int_equal(zr_s3_keys_ask(&quick, &err), ZARR_OK);
    while (zr_s3_keys_are_awaited(&quick) && zr_s3_keys_are_awaited(&slow))
        (void)usleep(1000);
    assert_true(zr_s3_keys_are_awaited(&slow));
    assert_int_equal(zr_s3_keys_check(&quick, &err), ZARR_OK);
    zr_s3_keys_deinit(&slow);
    zr_s3_keys_deinit(&quick);
}

/* A renewer fetches a key, only the present one expires, and the end of the keys ends
 * a program that hangs. */
static void test_renewer(void **state)
{
    char command[400], mark[80];
    struct zr_s3_keys k;
    struct zr_s3_key *key;

    (void)state;
    (void)snprintf(mark, sizeof mark, "%s/mark", folder);
    (void)snprintf(command, sizeof command,
                   "[profile late]\ncredential_process = test -e %s && sleep 600; echo "
                   "'{\"Version\": 1, \"AccessKeyId\": \"AK\", \"SecretAccessKey\": "
                   "\"S\"}'\n",
                   mark);
    write_file(config, command);
    assert_int_equal(find(&k, (struct zr_s3_keys_options){.profile = "late"}), ZARR_OK);
    assert_false(zr_s3_keys_are_awaited(&k)); /* no thread was asked */
    for (uint64_t number = 1; number <= 2; number++) {
        assert_int_equal(zr_s3_keys_ask(&k, &err), ZARR_OK);
        while (zr_s3_keys_are_awaited(&k) || atomic_load(&k.is_asked))
            (void)usleep(1000);
        assert_int_equal(zr_s3_keys_check(&k, &err), ZARR_OK);
        key = zr_s3_keys_get(&k);
        assert_int_equal(key->number, number);
        zr_s3_key_free(key);
        assert_true(zr_s3_keys_expire(&k, number - 1)); /* an old one */
        assert_int_equal(zr_s3_keys_ask(&k, &err), ZARR_OK);
        assert_false(atomic_load(&k.is_asked));
        assert_true(zr_s3_keys_expire(&k, number));
    }
    write_file(mark, "");
    assert_int_equal(zr_s3_keys_ask(&k, &err), ZARR_OK);
    assert_true(zr_s3_keys_are_awaited(&k));
    zr_s3_keys_deinit(&k);
    assert_int_equal(unlink(mark), 0);
}

static uint64_t key_number(struct zr_s3_keys *k)
{
    struct zr_s3_key *key = zr_s3_keys_get(k);
    const uint64_t number = key->number;

    zr_s3_key_free(key);
    return number;
}

/* Before a key expires one thread fetches the next one. Others go on with the old key. */
static void test_early_renewal(void **state)
{
    char command[400], mark[80], expires[32];
    const time_t end = time(NULL) + 200;
    bool is_refreshing = false;
    struct zr_s3_keys k;
    struct tm at;

    (void)state;
    (void)snprintf(mark, sizeof mark, "%s/mark", folder);
    (void)strftime(expires, sizeof expires, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&end, &at));
    (void)snprintf(
        command, sizeof command,
        "[profile early]\ncredential_process = while test -e %s; do sleep 0.01; "
        "done; echo '{\"Version\": 1, \"AccessKeyId\": \"AK\", "
        "\"SecretAccessKey\": \"S\", \"Expiration\": \"%s\"}'\n",
        mark, expires);
    write_file(config, command);
    assert_int_equal(find(&k, (struct zr_s3_keys_options){.profile = "early"}), ZARR_OK);
    assert_int_equal(zr_s3_keys_renew(&k, NULL, &err), ZARR_OK);
    write_file(mark, ""); /* the program hangs now */
    k.next_try_s = 0;
    assert_int_equal(zr_s3_keys_ask(&k, &err), ZARR_OK);
    while (!is_refreshing) {
        zr_mutex_lock(&k.mutex);
        is_refreshing = k.is_refreshing;
        zr_mutex_unlock(&k.mutex);
        (void)usleep(1000);
    }
    assert_false(zr_s3_keys_are_awaited(&k));
    assert_int_equal(zr_s3_keys_check(&k, &err), ZARR_OK);
    assert_int_equal(zr_s3_keys_renew(&k, NULL, &err), ZARR_OK); /* does not wait */
    assert_int_equal(key_number(&k), 1);
    assert_int_equal(unlink(mark), 0);
    while (key_number(&k) < 2)
        (void)usleep(1000);
    zr_s3_keys_deinit(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_files_that_are_none),
        cmocka_unit_test(test_cancelled_renewal), /* replaces the file */
        cmocka_unit_test(test_renewers),
        cmocka_unit_test(test_renewer),
        cmocka_unit_test(test_early_renewal),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
