/*
 * s3/s3.c - the functions of the store, its opening, and the signature of its requests.
 * Thread class: shared.
 */
#include "s3/s3_int.h"

#include <string.h>
#include <strings.h>

/* Operations that the library may have in flight; the engine decides how many of them a
 * host gets. */
enum {
    S3_PARALLEL = 256,
    PLACE_RANK = 5 /* of a lock inside of no other */
};

static const struct zr_http_protocol s3_protocol = {
    .flags = ZR_NET_NO_REDIRECT,
    .is_strict = true,
    .put_url = zr_s3_put_url,
    .add_headers = zr_s3_add_headers,
    .must_wait = zr_s3_must_wait,
    .refuse = zr_s3_refuse,
};

/* ---- functions of the store ---- */

static void s3_close(void *self)
{
    struct zr_s3_store *s = self;
    const zarr_allocator *alloc = s->reader.env.alloc;

    zr_net_free(s->reader.net);
    zr_http_reader_deinit(&s->reader);
    for (size_t i = 0; i < s->n_lines; i++)
        zr_free_secret(alloc, s->lines[i]);
    zr_s3_keys_deinit(&s->keys);
    zr_s3_place_deinit(&s->place[0]);
    zr_s3_place_deinit(&s->place[1]);
    zr_url_deinit(&s->endpoint);
    zr_url_deinit(&s->url);
    zr_str_deinit(&s->prefix);
    zr_fork_hook_remove(&s->fork);
    zr_mutex_deinit(&s->mutex);
    zr_free(alloc, s);
}

static void s3_caps(void *self, zarr_store_caps *out)
{
    const struct zr_s3_store *s = self;

    out->flags = ZARR_STORE_CAP_RANGES | ZARR_STORE_CAP_SUFFIX | ZARR_STORE_CAP_LIST |
                 ZARR_STORE_CAP_VERSIONS | ZARR_STORE_CAP_COALESCES |
                 ZARR_STORE_CAP_WRITE | ZARR_STORE_CAP_ATOMIC_PUT | ZARR_STORE_CAP_PARTS |
                 ZARR_STORE_CAP_COPY;
    if (!s->is_unconditional)
        out->flags |= ZARR_STORE_CAP_PUT_NEW | ZARR_STORE_CAP_PUT_IF_VERSION;
    if (s->keeps_erase)
        out->flags |= ZARR_STORE_CAP_ERASE_IF_VERSION;
    out->parallel = S3_PARALLEL;
    out->part_min_bytes = ZR_S3_PART_BYTES;
    out->parts_max = ZR_S3_PARTS_MOST;
}

static uint64_t put_reads_first(zarr_store_op **ops, uint64_t n)
{
    uint64_t n_reads = 0;

    for (uint64_t i = 0; i < n; i++)
        if (ops[i]->verb == ZARR_STORE_GET || ops[i]->verb == ZARR_STORE_STAT) {
            zarr_store_op *const read = ops[i];

            ops[i] = ops[n_reads];
            ops[n_reads++] = read;
        }
    return n_reads;
}

/* A probe may erase its key, and zarr_store_clean() that of a probe or of a lock file. */
zarr_status zr_s3_check_key(const char *key, zarr_error *err)
{
    const char *slash = strrchr(key, '/');

    return zr_starts_with(slash ? slash + 1 : key, ZR_S3_PROBE_NAME) ||
                   zr_ends_with(key, ZR_LOCK_SUFFIX)
               ? zr_fail(err, ZARR_ERR_INVALID, "%s: this name is reserved", key)
               : ZARR_OK;
}

/* A change that a reactor does not start itself: it hashes much, or waits for a probe. */
struct late_change {
    struct zr_task task;
    struct zr_net_scope scope;
    struct zr_s3_store *store;
    zarr_store_op *op;
    zr_s3_done_fn *done;
    void *arg;
};

static uint64_t start_change(struct zr_s3_store *s, zarr_store_op **ops, uint64_t n,
                             zr_s3_done_fn *done, void *arg);

static void start_late(void *user)
{
    struct late_change *late = user, l = *late;
    struct zr_net_scope scope;

    zr_net_scope_move(&scope, &late->scope);
    zr_free(l.store->reader.env.alloc, late);
    (void)start_change(l.store, &l.op, 1, l.done, l.arg);
    zr_net_scope_end(&scope);
}

static void submit_late(struct zr_s3_store *s, zarr_store_op *op, zr_s3_done_fn *done,
                        void *arg)
{
    const zarr_allocator *alloc = s->reader.env.alloc;
    struct late_change *late = zr_calloc(alloc, 1, sizeof *late);
    zarr_error err = {0};
    zarr_status st = late ? ZARR_OK : zr_fail_memory(&err, sizeof *late);

    if (late) {
        *late = (struct late_change){
            .store = s, .op = op, .done = done, .arg = arg, .task.fn = start_late};
        late->task.arg = late;
        zr_net_scope_begin(&late->scope, s->reader.net, arg);
        st = zr_task_submit(&late->task, &err);
    }
    if (st == ZARR_OK)
        return;
    if (late)
        zr_net_scope_end(&late->scope);
    zr_free(alloc, late);
    op->status = st;
    done(arg, op, &err);
}

static bool must_be_late(const struct zr_s3_store *s, const zarr_store_op *op)
{
    const bool is_large =
        op->flags & ZARR_STORE_OP_IN_PARTS || op->mem.bytes > ZR_S3_PUT_MOST;

    return zr_net_is_reactor() &&
           (op->mem.bytes > ZR_S3_LATE_BYTES ||
            (op->flags & ZARR_STORE_OP_IF_VERSION &&
             !atomic_load(is_large ? &s->keeps_uploads : &s->keeps_writes)));
}

/* Starts the first of n changes, and those that can share its request. Returns how many.
 */
static uint64_t start_change(struct zr_s3_store *s, zarr_store_op **ops, uint64_t n,
                             zr_s3_done_fn *done, void *arg)
{
    zarr_store_op *const op = ops[0];
    zarr_error err = {0};

    if (op->verb != ZARR_STORE_ERASE && zr_s3_check_key(op->key, &err) != ZARR_OK) {
        op->status = err.code;
        done(arg, op, &err);
        return 1;
    }
    if (op->verb == ZARR_STORE_ERASE)
        return zr_s3_erase_many(s, ops, n, done, arg);
    if (op->verb == ZARR_STORE_COPY)
        zr_s3_copy(s, op, done, arg);
    else if (must_be_late(s, op))
        submit_late(s, op, done, arg);
    else if (op->verb == ZARR_STORE_PUT_PART)
        zr_s3_put_part(s, op, done, arg);
    else if (op->flags & ZARR_STORE_OP_IN_PARTS)
        zr_s3_commit(s, op, done, arg);
    else if (op->mem.bytes > ZR_S3_PUT_MOST)
        zr_s3_put_large(s, op, done, arg);
    else
        zr_s3_write(s, op, done, arg);
    return 1;
}

static void s3_submit(void *self, zarr_store_op **ops, uint64_t n,
                      void (*done)(void *arg, zarr_store_op *op, const zarr_error *err),
                      void *arg)
{
    struct zr_s3_store *s = self;
    struct zr_net_scope scope;
    zarr_error err = {0};
    uint64_t n_reads = 0;
    zarr_status st;

    zr_net_scope_begin(&scope, s->reader.net, arg);
    st = zr_s3_keys_renew(&s->keys, n > 0 ? ops[0]->cancel : NULL, &err);
    for (uint64_t i = 0; st != ZARR_OK && i < n; i++) {
        ops[i]->status = st;
        done(arg, ops[i], &err);
    }
    if (st == ZARR_OK)
        n_reads = put_reads_first(ops, n);
    if (n_reads > 0)
        zr_http_submit(self, ops, n_reads, done, arg);
    for (uint64_t i = n_reads; st == ZARR_OK && i < n;)
        i += start_change(s, ops + i, n - i, done, arg);
    zr_net_scope_end(&scope);
}

static zarr_status s3_clean(void *self, const char *prefix, uint64_t min_age_s,
                            uint64_t *n_removed, const zarr_cancel *cancel,
                            zarr_error *err)
{
    const zarr_status st = zr_s3_clean(self, prefix, min_age_s, n_removed, cancel, err);

    return st == ZARR_OK
               ? zr_s3_clean_uploads(self, prefix, min_age_s, n_removed, cancel, err)
               : st;
}

static bool is_aws(const struct zr_s3_store *s)
{
    const char *const host = s->endpoint.host;

    return !host || zr_ends_with(host, ".amazonaws.com") ||
           zr_ends_with(host, ".amazonaws.com.cn");
}

static void s3_cancel(void *self, void *arg)
{
    zr_http_cancel(self, arg);
}

/* The same bucket has the same place in each style and region; AWS is no endpoint. */
static void s3_place(void *self, zarr_store_place_fn fn, void *user)
{
    const struct zr_s3_store *s = self;
    zarr_store_place place = {.struct_size = sizeof place,
                              .scheme = "s3",
                              .endpoint = "",
                              .bucket = s->url.host,
                              .prefix = zr_str_text(&s->prefix)};
    struct zr_str origin;

    zr_str_init(&origin, s->reader.env.alloc);
    if (!is_aws(s)) {
        zr_url_put_origin(&origin, &s->endpoint);
        if (origin.failed)
            goto out;
        place.endpoint = strstr(zr_str_text(&origin), "://") + strlen("://");
    }
    fn(user, &place);
out:
    zr_str_deinit(&origin);
}

const zarr_store_vtable zr_s3_vtable = {
    .struct_size = sizeof(zarr_store_vtable),
    .name = "s3",
    .caps = s3_caps,
    .submit = s3_submit,
    .cancel = s3_cancel,
    .list = zr_s3_list,
    .place = s3_place,
    .count = zr_http_count,
    .clean = s3_clean,
    .begin_parts = zr_s3_begin_parts,
    .end_parts = zr_s3_end_parts,
    .close = s3_close,
};

/* ---- opening ---- */

/* Texts of options, the environment and the profile; NULL: not told. */
struct s3_opening {
    struct zr_s3_store *s;
    struct zr_http_options transport;
    struct zr_s3_profiles profiles;
    struct zr_s3_keys_options keys;
    const char *region, *endpoint, *style, *conditional;
    char *profile_region, *profile_endpoint; /* owned */
    zarr_error *err;
};

static const char *first_text(const char *a, const char *b)
{
    return a && *a ? a : b && *b ? b : NULL;
}

static zarr_status read_options(struct s3_opening *o, const char *config)
{
    struct zr_s3_store *s = o->s;
    const struct zr_http_own_option options[] = {
        {"access_key_id", NULL, &o->keys.id},
        {"allow_http", &s->allow_http, NULL},
        {"anonymous", &s->is_anonymous, NULL},
        {"checksums", &s->checksums, NULL},
        {"conditional", NULL, &o->conditional},
        {"denied_is_missing", &s->denied_is_missing, NULL},
        {"endpoint", NULL, &o->endpoint},
        {"profile", NULL, &o->keys.profile},
        {"region", NULL, &o->region},
        {"requester_pays", &s->requester_pays, NULL},
        {"secret_access_key", NULL, &o->keys.secret},
        {"session_token", NULL, &o->keys.token},
        {"style", NULL, &o->style},
    };
    const struct zr_http_own_options own = {"an S3 store", options, ZR_COUNT(options)};

    return zr_http_options_read(&o->transport, &own, config, NULL, &s->reader.env,
                                o->err);
}

/* Whether a header "Name: value" has this name, or one that begins with it. */
static bool has_header_name(const char *line, const char *name, bool is_whole)
{
    return strncasecmp(line, name, strlen(name)) == 0 &&
           (!is_whole || line[strlen(name)] == ':');
}

static zarr_status add_signed_line(struct s3_opening *o, const char *line)
{
    struct zr_s3_store *s = o->s;

    if (s->n_lines + 1 == ZR_COUNT(s->lines))
        return zr_fail(o->err, ZARR_ERR_INVALID,
                       "the option headers of an S3 store has more than %zu of x-amz-*",
                       ZR_COUNT(s->lines) - 2);
    s->lines[s->n_lines] = zr_strdup(s->reader.env.alloc, line);
    return s->lines[s->n_lines] ? (s->n_lines++, ZARR_OK)
                                : zr_fail_memory(o->err, strlen(line) + 1);
}

/* Takes headers that the service wants signed from those of transport, and refuses what
 * the store sends itself. */
static zarr_status take_signed_lines(struct s3_opening *o)
{
    static const char *const own[] = {"Authorization",
                                      "Host",
                                      "If-Match",
                                      "If-None-Match",
                                      "x-amz-date",
                                      "x-amz-content-sha256",
                                      "x-amz-security-token",
                                      "x-amz-meta-zarrc-write"};
    const char **const lines = o->transport.headers;
    size_t n = 0;

    if (o->s->requester_pays)
        ZR_CHECK(add_signed_line(o, "x-amz-request-payer: requester"));
    for (size_t i = 0; lines[i]; i++) {
        for (size_t k = 0; k < ZR_COUNT(own); k++)
            if (has_header_name(lines[i], own[k], true))
                return zr_fail(
                    o->err, ZARR_ERR_INVALID,
                    "an S3 store has no option bearer_token, and its option headers "
                    "has no %s",
                    own[k]);
        if (has_header_name(lines[i], "x-amz-", false))
            ZR_CHECK(add_signed_line(o, lines[i]));
        else
            lines[n++] = lines[i];
    }
    lines[n] = NULL;
    return ZARR_OK;
}

static zarr_status refuse_contradictions(const struct s3_opening *o)
{
    const struct zr_s3_keys_options *k = &o->keys;
    const struct zr_net_options *net = &o->transport.net;

    if (net->user_password || net->netrc || net->netrc_file)
        return zr_fail(o->err, ZARR_ERR_INVALID,
                       "an S3 store has no option user, password, netrc or netrc_file: "
                       "its requests are signed");
    if (o->s->is_anonymous &&
        (first_text(k->id, k->secret) || first_text(k->token, k->profile)))
        return zr_fail(o->err, ZARR_ERR_INVALID,
                       "the option anonymous of an S3 store excludes those of "
                       "credentials");
    return ZARR_OK;
}

/* The region and the endpoint: options, then the environment, then the profile. */
static zarr_status read_surroundings(struct s3_opening *o)
{
    zr_s3_env *const v = o->keys.variable;
    const char *profile = first_text(o->keys.profile, v("AWS_PROFILE"));
    const char *ignore = v("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
    const char *told;

    profile = profile ? profile : "default";
    ZR_CHECK(zr_s3_profiles_read(&o->profiles, o->s->reader.env.alloc, v, o->err));
    ZR_CHECK(
        zr_s3_profiles_get(&o->profile_region, &o->profiles, profile, "region", o->err));
    ZR_CHECK(zr_s3_profiles_get(&o->profile_endpoint, &o->profiles, profile,
                                "endpoint_url", o->err));
    told = first_text(v("AWS_REGION"), v("AWS_DEFAULT_REGION"));
    o->region = first_text(o->region, first_text(told, o->profile_region));
    if (!o->region)
        o->region = "us-east-1";
    if (ignore && zr_streq(ignore, "true"))
        return ZARR_OK;
    told = first_text(v("AWS_ENDPOINT_URL_S3"), v("AWS_ENDPOINT_URL"));
    o->endpoint = first_text(o->endpoint, first_text(told, o->profile_endpoint));
    return ZARR_OK;
}

static zarr_status set_endpoint(struct s3_opening *o)
{
    struct zr_s3_store *s = o->s;
    const char *const bucket = s->url.host;
    zarr_status st = ZARR_OK;

    if (o->endpoint) {
        st = zr_url_parse(&s->endpoint, s->reader.env.alloc, o->endpoint, o->err);
        if (st != ZARR_OK)
            return zr_prefix(o->err, st, "the endpoint of an S3 store");
        if ((strcmp(s->endpoint.scheme, "http") != 0 &&
             strcmp(s->endpoint.scheme, "https") != 0) ||
            s->endpoint.user_info || s->endpoint.query)
            return zr_fail(o->err, ZARR_ERR_INVALID,
                           "the endpoint of an S3 store is http://HOST or https://HOST, "
                           "with a port and a path if need be");
    }
    /* a name with a dot fits no certificate, one with other characters no host */
    s->is_path_style =
        s->endpoint.host || strpbrk(bucket, "._") ||
        strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(bucket);
    if (o->style && zr_streq(o->style, "path"))
        s->is_path_style = true;
    else if (o->style && zr_streq(o->style, "virtual") &&
             strspn(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-.") != strlen(bucket))
        return zr_fail(o->err, ZARR_ERR_INVALID,
                       "the option style of an S3 store is virtual, but the name of the "
                       "bucket is none of a host");
    else if (o->style && zr_streq(o->style, "virtual"))
        s->is_path_style = false;
    else if (o->style && !zr_streq(o->style, "auto"))
        return zr_fail(o->err, ZARR_ERR_INVALID,
                       "the option style of an S3 store is auto, path or virtual");
    return ZARR_OK;
}

/* What is known of conditions without a probe. */
static zarr_status set_conditions(struct s3_opening *o)
{
    struct zr_s3_store *s = o->s;
    const char *how = o->conditional ? o->conditional : "probe";

    s->is_unconditional = zr_streq(how, "none");
    /* AWS alone is trusted with a condition of DELETE */
    s->keeps_erase = !s->is_unconditional && is_aws(s);
    atomic_store(&s->keeps_writes,
                 s->keeps_erase || (!s->is_unconditional && zr_streq(how, "etag")));
    /* a server that keeps those of PUT may ignore those of completions */
    atomic_store(&s->keeps_uploads, s->keeps_erase);
    if (!s->is_unconditional && !zr_streq(how, "etag") && !zr_streq(how, "probe"))
        return zr_fail(o->err, ZARR_ERR_INVALID,
                       "the option conditional of an S3 store is etag, none or probe");
    return ZARR_OK;
}

/* The URL of a request would leave the bucket or the prefix by a part "." or "..". */
static bool has_dot_part(const char *path)
{
    for (size_t n; *path; path += n + (path[n] == '/')) {
        n = strcspn(path, "/");
        if ((n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
            return true;
    }
    return false;
}

static zarr_status set_prefix(struct s3_opening *o)
{
    struct zr_s3_store *s = o->s;
    const char *path = s->url.path + 1;

    if (!*s->url.host || s->url.port || s->url.user_info || s->url.query)
        return zr_fail(o->err, ZARR_ERR_INVALID,
                       "the URL of an S3 store is s3://BUCKET/PREFIX, without a port, a "
                       "user or a query");
    if (!zr_url_decode(&s->prefix, path, strlen(path)))
        return zr_fail(o->err, ZARR_ERR_INVALID, "the path of the URL is no UTF-8");
    if (*s->url.host == '.' || has_dot_part(zr_str_text(&s->prefix)))
        return zr_fail(o->err, ZARR_ERR_INVALID,
                       "the URL of an S3 store has a bucket that begins with a dot, or a "
                       "part \".\" or \"..\" in its path");
    if (s->prefix.bytes > 0 && !zr_ends_with(zr_str_text(&s->prefix), "/"))
        zr_str_putc(&s->prefix, '/');
    return zr_str_status(&s->prefix, o->err);
}

/* Without these libraries nothing can be read. */
static zarr_status load_libraries(const struct zr_s3_store *s, zarr_error *err)
{
    const struct zr_xml_sink none = {NULL, NULL, NULL};
    zarr_status st = zr_crypto_load(err);

    if (st == ZARR_OK)
        st = zr_xml_read(&none, s->reader.env.alloc, "<a/>", 4, err);
    return st == ZARR_OK ? st : zr_prefix(err, st, "S3");
}

static zarr_status open_parts(struct s3_opening *o, const char *url, const char *config)
{
    struct zr_s3_store *s = o->s;
    struct zr_net_options net;

    ZR_CHECK(load_libraries(s, o->err));
    ZR_CHECK(zr_url_parse(&s->url, s->reader.env.alloc, url, o->err));
    ZR_CHECK(set_prefix(o));
    ZR_CHECK(read_options(o, config));
    ZR_CHECK(refuse_contradictions(o));
    ZR_CHECK(take_signed_lines(o));
    ZR_CHECK(read_surroundings(o));
    ZR_CHECK(set_endpoint(o));
    ZR_CHECK(zr_s3_place_init(&s->place[0], s, o->region, o->err));
    ZR_CHECK(set_conditions(o));
    net = o->transport.net;
    if (zr_s3_is_loopback(s->place[0].bucket.host))
        net.proxy = ""; /* which would see a session token */
    ZR_CHECK(zr_net_open(&s->reader.net, &net, o->err));
    o->keys.anonymous = s->is_anonymous;
    o->keys.untrusted = o->transport.net.untrusted;
    o->keys.region = s->place[0].region;
    o->keys.profiles = &o->profiles;
    o->keys.net = &o->transport.net;
    return zr_s3_keys_init(&s->keys, &o->keys, &s->reader.env, o->err);
}

zarr_status zr_s3_open(void **self, const struct zr_store_env *env, const char *url,
                       const char *config, zr_s3_env *variable, zarr_error *err)
{
    struct zr_s3_store *s = zr_calloc(env->alloc, 1, sizeof *s);
    struct s3_opening o = {.s = s, .keys = {.variable = variable}, .err = err};
    zarr_status st;

    if (!s)
        return zr_fail_memory(err, sizeof *s);
    s->reader.env = *env;
    s->reader.protocol = &s3_protocol;
    zr_str_init(&s->prefix, env->alloc);
    zr_mutex_init(&s->mutex);
    s->fork = (struct zr_fork_hook){.mutex = &s->mutex, .rank = PLACE_RANK};
    zr_fork_hook_add(&s->fork);
    st = open_parts(&o, url, config);
    zr_http_options_deinit(&o.transport);
    zr_s3_profiles_deinit(&o.profiles);
    zr_free_secret(env->alloc, o.profile_region);
    zr_free_secret(env->alloc, o.profile_endpoint);
    if (st == ZARR_OK)
        *self = s;
    else
        s3_close(s);
    return st;
}
