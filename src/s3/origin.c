/*
 * s3/origin.c - where credentials come from: the first of options, environment, profile,
 * web identity, container and instance that is there. Sends no request.
 * Thread class: plain functions.
 */
#include "s3/s3_int.h"

#include <string.h>

enum {
    METADATA_CONNECT_MS = 1000,
    METADATA_STALL_S = 2,
    METADATA_TRIES = 2
};

/* What the functions here have in common. */
struct finding {
    struct zr_s3_keys *k;
    const struct zr_s3_keys_options *o;
    const char *profile;
    bool is_found;
    zarr_error *err;
};

static bool is_set(const char *text)
{
    return text && *text;
}

static zarr_status keep_source_text(struct finding *f, char **out, const char *text)
{
    zr_free_secret(f->k->alloc, *out);
    *out = zr_strdup(f->k->alloc, text);
    return *out ? ZARR_OK : zr_fail_memory(f->err, strlen(text) + 1);
}

static zarr_status take_key(struct finding *f, const char *id, const char *secret,
                            const char *token, const char *where)
{
    const zarr_status st =
        zr_s3_key_create(&f->k->key, f->k->alloc, id, secret, token, 0, f->err);

    f->is_found = true;
    return st == ZARR_OK ? st : zr_prefix(f->err, st, "%s", where);
}

/* A client for the requests of credentials, which has none from options. Metadata servers
 * and this machine have no proxy. */
static zarr_status open_client(struct finding *f, const char *host, bool is_metadata)
{
    struct zr_net_options net = *f->o->net;

    net.secret_headers = NULL;
    net.user_password = NULL;
    net.netrc = false;
    net.netrc_file = NULL;
    net.tls_unverified = false;
    if (is_metadata || zr_s3_is_loopback(host))
        net.proxy = "";
    if (is_metadata) {
        net.connect_ms = METADATA_CONNECT_MS;
        net.stall_s = METADATA_STALL_S;
        net.tries = METADATA_TRIES;
    }
    return zr_net_open(&f->k->net, &net, f->err);
}

/* ---- options and environment ---- */

static zarr_status find_options(struct finding *f)
{
    const struct zr_s3_keys_options *o = f->o;

    if (is_set(o->profile) && (is_set(o->id) || is_set(o->secret) || is_set(o->token)))
        return zr_fail(
            f->err, ZARR_ERR_INVALID,
            "the options access_key_id and profile of an S3 store exclude each "
            "other");
    if (is_set(o->id) && is_set(o->secret))
        return take_key(f, o->id, o->secret, o->token, "options");
    if (is_set(o->id) || is_set(o->secret) || is_set(o->token))
        return zr_fail(f->err, ZARR_ERR_INVALID,
                       "the options access_key_id and secret_access_key of an S3 store "
                       "come together, and session_token with them");
    return ZARR_OK;
}

static zarr_status find_environment(struct finding *f)
{
    zr_s3_env *const v = f->o->variable;
    const char *id = v("AWS_ACCESS_KEY_ID"), *secret = v("AWS_SECRET_ACCESS_KEY");

    if (is_set(f->o->profile)) /* which was asked for */
        return ZARR_OK;
    if (is_set(id) && is_set(secret))
        return take_key(f, id, secret, v("AWS_SESSION_TOKEN"), "environment");
    if (is_set(id) || is_set(secret))
        return zr_fail(f->err, ZARR_ERR_INVALID,
                       "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set");
    return ZARR_OK;
}

/* ---- STS ---- */

static zarr_status set_sts(struct finding *f, enum zr_s3_source source)
{
    struct zr_s3_origin *to = &f->k->origin;
    const char *url = f->o->variable("AWS_ENDPOINT_URL_STS");
    const char *session = f->o->variable("AWS_ROLE_SESSION_NAME");
    struct zr_url parsed = {0};
    struct zr_str text;
    zarr_status st = ZARR_OK;

    zr_str_init(&text, f->k->alloc);
    if (is_set(url))
        zr_str_puts(&text, url);
    else
        zr_str_printf(&text, "https://sts.%s.amazonaws.com%s/", f->o->region,
                      zr_starts_with(f->o->region, "cn-") ? ".cn" : "");
    ZR_TRY(zr_str_status(&text, f->err));
    ZR_TRY(zr_url_parse(&parsed, f->k->alloc, zr_str_text(&text), f->err));
    if (strcmp(parsed.scheme, "https") != 0 && !zr_s3_is_loopback(parsed.host))
        ZR_FAIL(f->err, ZARR_ERR_DENIED,
                "AWS_ENDPOINT_URL_STS is neither https nor this machine");
    ZR_TRY(keep_source_text(f, &to->url, zr_str_text(&text)));
    ZR_TRY(keep_source_text(f, &to->region, f->o->region));
    if (!to->session)
        ZR_TRY(keep_source_text(f, &to->session, is_set(session) ? session : "zarrc"));
    ZR_TRY(open_client(f, parsed.host, false));
    to->source = source;
    f->is_found = true;
out:
    zr_url_deinit(&parsed);
    zr_str_deinit(&text);
    return st;
}

static zarr_status find_web_identity(struct finding *f)
{
    const char *file = f->o->variable("AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *role = f->o->variable("AWS_ROLE_ARN");

    if (!is_set(file) || !is_set(role))
        return ZARR_OK;
    ZR_CHECK(keep_source_text(f, &f->k->origin.token_file, file));
    ZR_CHECK(keep_source_text(f, &f->k->origin.role, role));
    return set_sts(f, ZR_S3_WEB_IDENTITY);
}

/* ---- profiles ---- */

static zarr_status get_member(struct finding *f, const char *profile, const char *name,
                              char **out)
{
    return zr_s3_profiles_get(out, f->o->profiles, profile, name, f->err);
}

/* Takes the fixed key of a profile, if it has one; all of it from one file. */
static zarr_status find_profile_key(struct finding *f, const char *profile,
                                    struct zr_s3_key **out)
{
    const struct zr_str none = {.alloc = f->k->alloc};
    struct zr_s3_profiles file = *f->o->profiles;
    char *id = NULL, *secret = NULL, *token = NULL;
    zarr_status st = ZARR_OK;

    for (int i = 0; i < 2 && !id && !secret; i++) {
        file.credentials = i == 0 ? f->o->profiles->credentials : none;
        file.config = i == 1 ? f->o->profiles->config : none;
        ZR_TRY(zr_s3_profiles_get(&id, &file, profile, "aws_access_key_id", f->err));
        ZR_TRY(
            zr_s3_profiles_get(&secret, &file, profile, "aws_secret_access_key", f->err));
    }
    ZR_TRY(zr_s3_profiles_get(&token, &file, profile, "aws_session_token", f->err));
    if (!id != !secret)
        ZR_FAIL(f->err, ZARR_ERR_INVALID,
                "it has only one of aws_access_key_id and aws_secret_access_key");
    if (id && secret)
        st = zr_s3_key_create(out, f->k->alloc, id, secret, token, 0, f->err);
out:
    if (st != ZARR_OK)
        st = zr_prefix(f->err, st, "profile %.100s", profile);
    zr_free_secret(f->k->alloc, id);
    zr_free_secret(f->k->alloc, secret);
    zr_free_secret(f->k->alloc, token);
    return st;
}

/* A role, which the key of another profile or a token assumes. */
static zarr_status find_profile_role(struct finding *f)
{
    struct zr_s3_origin *to = &f->k->origin;
    char *source = NULL;
    zarr_status st = ZARR_OK;

    ZR_TRY(get_member(f, f->profile, "role_arn", &to->role));
    if (!to->role)
        goto out;
    ZR_TRY(get_member(f, f->profile, "web_identity_token_file", &to->token_file));
    ZR_TRY(get_member(f, f->profile, "role_session_name", &to->session));
    ZR_TRY(get_member(f, f->profile, "external_id", &to->external_id));
    ZR_TRY(get_member(f, f->profile, "source_profile", &source));
    if (to->token_file)
        ZR_LEAVE(set_sts(f, ZR_S3_WEB_IDENTITY));
    if (source)
        ZR_TRY(find_profile_key(f, source, &to->parent));
    if (!to->parent)
        ZR_FAIL(
            f->err, ZARR_ERR_UNSUPPORTED,
            "profile %.100s: a role needs a web_identity_token_file, or a "
            "source_profile that has a fixed key; credential_source and roles of roles "
            "are not supported: use credential_process",
            f->profile);
    st = set_sts(f, ZR_S3_ROLE);
out:
    zr_free_secret(f->k->alloc, source);
    return st;
}

static zarr_status refuse_other_profiles(struct finding *f)
{
    static const char *const names[] = {"sso_session", "sso_start_url", "login_session"};
    char *value = NULL;
    zarr_status st = ZARR_OK;

    for (size_t i = 0; i < ZR_COUNT(names); i++) {
        ZR_TRY(get_member(f, f->profile, names[i], &value));
        if (value)
            ZR_FAIL(
                f->err, ZARR_ERR_UNSUPPORTED,
                "profile %.100s: %s is not supported: use credential_process, such as "
                "\"aws configure export-credentials\"",
                f->profile, names[i]);
    }
out:
    zr_free_secret(f->k->alloc, value);
    return st;
}

static zarr_status find_profile(struct finding *f)
{
    struct zr_s3_origin *to = &f->k->origin;
    zarr_status st = ZARR_OK;

    /* without a name told, f->profile is "default", which may be missing */
    if ((is_set(f->o->profile) || is_set(f->o->variable("AWS_PROFILE"))) &&
        !zr_s3_profiles_have(f->o->profiles, f->profile))
        return zr_fail(f->err, ZARR_ERR_INVALID, "there is no profile %.100s in %.400s",
                       f->profile, zr_str_text(&f->o->profiles->names));
    ZR_TRY(find_profile_role(f));
    if (f->is_found)
        goto out;
    ZR_TRY(find_profile_key(f, f->profile, &f->k->key));
    f->is_found = f->k->key != NULL;
    if (f->is_found)
        goto out;
    ZR_TRY(get_member(f, f->profile, "credential_process", &to->command));
    if (to->command && f->o->untrusted) {
        zr_str_puts(&f->k->looked, "credential_process is not run (untrusted), ");
    } else if (to->command) {
        to->source = ZR_S3_PROCESS;
        f->is_found = true;
    } else {
        st = refuse_other_profiles(f);
    }
out:
    return st;
}

/* ---- metadata servers ---- */

/* Whether a container's URL is one that may be asked. */
static bool is_container_host(const struct zr_url *u)
{
    static const char *const hosts[] = {"169.254.170.2", "169.254.170.23",
                                        "[fd00:ec2::23]"};

    if (strcmp(u->scheme, "https") == 0 || zr_s3_is_loopback(u->host))
        return true;
    for (size_t i = 0; i < ZR_COUNT(hosts); i++)
        if (strcmp(u->host, hosts[i]) == 0)
            return true;
    return false;
}

static zarr_status find_container(struct finding *f)
{
    struct zr_s3_origin *to = &f->k->origin;
    zr_s3_env *const v = f->o->variable;
    const char *path = v("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    const char *full = v("AWS_CONTAINER_CREDENTIALS_FULL_URI");
    const char *token = v("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    const char *file = v("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    struct zr_str text;
    struct zr_url url = {0};
    zarr_status st = ZARR_OK;

    if (!is_set(path) && !is_set(full))
        return ZARR_OK;
    zr_str_init(&text, f->k->alloc);
    zr_str_printf(&text, "%s%s", is_set(path) ? "http://169.254.170.2" : "",
                  is_set(path) ? path : full);
    ZR_TRY(zr_str_status(&text, f->err));
    ZR_TRY(zr_url_parse(&url, f->k->alloc, zr_str_text(&text), f->err));
    if (!is_container_host(&url))
        ZR_FAIL(
            f->err, ZARR_ERR_DENIED,
            "AWS_CONTAINER_CREDENTIALS_FULL_URI is http, and not of this machine or a "
            "known container service");
    ZR_TRY(keep_source_text(f, &to->url, zr_str_text(&text)));
    if (is_set(token))
        ZR_TRY(keep_source_text(f, &to->authorization, token));
    if (is_set(file))
        ZR_TRY(keep_source_text(f, &to->token_file, file));
    ZR_TRY(open_client(f, url.host, true));
    to->source = ZR_S3_CONTAINER;
    f->is_found = true;
out:
    zr_url_deinit(&url);
    zr_str_deinit(&text);
    return st;
}

static zarr_status find_instance(struct finding *f)
{
    const char *off = f->o->variable("AWS_EC2_METADATA_DISABLED");
    const char *url = f->o->variable("AWS_EC2_METADATA_SERVICE_ENDPOINT");

    if (is_set(off) && (strcmp(off, "true") == 0 || strcmp(off, "TRUE") == 0 ||
                        strcmp(off, "True") == 0)) {
        zr_str_puts(&f->k->looked,
                    ", not in the metadata server (AWS_EC2_METADATA_DISABLED)");
        return ZARR_OK;
    }
    ZR_CHECK(keep_source_text(f, &f->k->origin.url,
                              is_set(url) ? url : "http://169.254.169.254"));
    for (char *s = f->k->origin.url; zr_ends_with(s, "/");)
        s[strlen(s) - 1] = '\0';
    ZR_CHECK(open_client(f, "", true));
    f->k->origin.source = ZR_S3_INSTANCE;
    zr_str_puts(&f->k->looked, ", and in the metadata server of the instance");
    return ZARR_OK;
}

/* ---- all ---- */

zarr_status zr_s3_origin_find(struct zr_s3_keys *k, const struct zr_s3_keys_options *o,
                              zarr_error *err)
{
    struct finding f = {.k = k, .o = o, .profile = o->profile, .err = err};
    zarr_status (*const find[])(struct finding *) = {find_options, find_environment,
                                                     find_profile, find_web_identity};

    if (!is_set(f.profile))
        f.profile = o->variable("AWS_PROFILE");
    if (!is_set(f.profile))
        f.profile = "default";
    for (size_t i = 0; i < ZR_COUNT(find) && !f.is_found; i++)
        ZR_CHECK(find[i](&f));
    if (f.is_found)
        return ZARR_OK;
    zr_str_printf(&k->looked,
                  "looked in the options access_key_id and profile, in the variables "
                  "AWS_ACCESS_KEY_ID, AWS_WEB_IDENTITY_TOKEN_FILE and "
                  "AWS_CONTAINER_CREDENTIALS_*, in the profile %.100s of %.400s",
                  f.profile, zr_str_text(&o->profiles->names));
    if (o->untrusted) {
        zr_str_puts(&k->looked, ", not in metadata servers (untrusted)");
    } else {
        ZR_CHECK(find_container(&f));
        if (!f.is_found)
            ZR_CHECK(find_instance(&f));
    }
    zr_str_puts(&k->looked, ". A public bucket needs the option anonymous=true");
    return zr_str_status(&k->looked, err);
}
