/*
 * http/options.c - the options of stores that send requests, the text `config` of
 * zarr_store_options. Those of transport are the same for all kinds of stores.
 * A value is what JSON has for it, or the same as a string: the program passes strings.
 * Values may be secrets, so no message quotes one.
 * Thread class: plain functions.
 */
#include "http/http_int.h"

#include "json/json.h"

#include <string.h>

/* What is read; the texts are in o->block, at these offsets + 1, since it grows. */
struct http_config {
    struct zr_http_options *o;
    const struct zr_http_own_options *own;
    size_t own_at[ZR_HTTP_OWN_MOST];
    zarr_error *err;
    size_t user, password, proxy, no_proxy, ca_file, ca_folder, netrc_file;
    size_t header[ZR_HTTP_HEADERS_MOST], n_headers;
};

static zarr_status refuse_config(struct http_config *c, const char *name,
                                 const char *what)
{
    return zr_fail(c->err, ZARR_ERR_INVALID,
                   "zarr_store_options.config: the option \"%s\" of %s is %s", name,
                   c->own->kind, what);
}

/* ---- values ---- */

static zarr_status read_config_text(struct http_config *c, const struct zr_json *v,
                                    size_t *at)
{
    const char *text = zr_json_string(v);

    if (!text)
        return refuse_config(c, v->key, "a string");
    for (const char *p = text; *p; p++)
        if ((uint8_t)*p < ' ' || *p == 0x7F)
            return refuse_config(c, v->key, "a string without control characters");
    *at = c->o->block.bytes + 1;
    zr_str_append(&c->o->block, text, strlen(text) + 1);
    return zr_str_status(&c->o->block, c->err);
}

static zarr_status read_config_bool(struct http_config *c, const struct zr_json *v,
                                    bool *out)
{
    if (zr_json_bool(v, out))
        return ZARR_OK;
    *out = zr_json_is_text(v, "true");
    return *out || zr_json_is_text(v, "false")
               ? ZARR_OK
               : refuse_config(c, v->key, "true or false");
}

static zarr_status read_config_number(struct http_config *c, const struct zr_json *v,
                                      uint32_t *out)
{
    const char *text = zr_json_string(v);
    uint64_t n = 0;

    if ((text ? !zr_parse_u64(text, strlen(text), &n) : !zr_json_u64(v, &n)) || n == 0 ||
        n > 1000000000)
        return refuse_config(c, v->key, "a number from 1 to 10^9");
    *out = (uint32_t)n;
    return ZARR_OK;
}

static zarr_status add_header(struct http_config *c, const char *option, const char *name,
                              const char *value)
{
    struct zr_str *block = &c->o->block;
    static const char token[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789!#$%&'*+-.^_`|~";

    if (*name == '\0' || strspn(name, token) != strlen(name))
        return refuse_config(c, option, "an object of names of headers and their values");
    for (const char *p = value; *p; p++)
        if (((uint8_t)*p < ' ' && *p != '\t') || *p == 0x7F)
            return refuse_config(c, option, "without control characters");
    if (c->n_headers == ZR_HTTP_HEADERS_MOST)
        return refuse_config(c, option, "too long: there are at most 64 headers");
    c->header[c->n_headers++] = block->bytes + 1;
    zr_str_printf(block, "%s: %s", name, value);
    zr_str_putc(block, '\0');
    return zr_str_status(block, c->err);
}

static zarr_status read_headers(struct http_config *c, const struct zr_json *v)
{
    if (!zr_json_is(v, ZR_JSON_OBJECT))
        return refuse_config(c, v->key, "an object of names of headers and their values");
    for (const struct zr_json *h = v->u.children.first; h; h = h->next) {
        const char *value = zr_json_string(h);

        if (!value || strlen(h->key) != h->key_bytes)
            return refuse_config(c, v->key,
                                 "an object of names of headers and their values");
        ZR_CHECK(add_header(c, v->key, h->key, value));
    }
    return ZARR_OK;
}

static zarr_status read_token(struct http_config *c, const struct zr_json *v)
{
    const char *token = zr_json_string(v);
    struct zr_str value;
    zarr_status st = ZARR_OK;

    if (!token)
        return refuse_config(c, v->key, "a string");
    zr_str_init(&value, c->o->block.alloc);
    zr_str_printf(&value, "Bearer %s", token);
    st = zr_str_status(&value, c->err);
    if (st == ZARR_OK)
        st = add_header(c, v->key, "Authorization", zr_str_text(&value));
    zr_wipe(value.ptr, value.cap);
    zr_str_deinit(&value);
    return st;
}

/* ---- options ---- */

/* The members of read_option()'s table, for a message. */
#define SHARED_OPTIONS                                                                   \
    "bearer_token, headers, ca_file, ca_folder, concurrency, connect_ms, netrc, "        \
    "netrc_file, no_proxy, password, proxy, stall_s, tls_unverified, tries, untrusted, " \
    "user"

static zarr_status refuse_unknown(struct http_config *c, const char *name)
{
    struct zr_str known;
    zarr_status st;

    zr_str_init(&known, c->o->block.alloc);
    for (size_t i = 0; i < c->own->n; i++)
        zr_str_printf(&known, ", %s", c->own->option[i].name);
    st = zr_fail(c->err, ZARR_ERR_INVALID,
                 "zarr_store_options.config: %s has no option \"%s\"; its options "
                 "are " SHARED_OPTIONS "%s",
                 c->own->kind, name, zr_str_text(&known));
    zr_str_deinit(&known);
    return st;
}

static zarr_status read_option(struct http_config *c, const struct zr_json *v)
{
    struct zr_net_options *net = &c->o->net;
    const struct {
        const char *name;
        bool *flag;
        uint32_t *number;
        size_t *text;
    } options[] = {
        {"ca_file", NULL, NULL, &c->ca_file},
        {"ca_folder", NULL, NULL, &c->ca_folder},
        {"concurrency", NULL, &net->concurrency, NULL},
        {"connect_ms", NULL, &net->connect_ms, NULL},
        {"netrc", &net->netrc, NULL, NULL},
        {"netrc_file", NULL, NULL, &c->netrc_file},
        {"no_proxy", NULL, NULL, &c->no_proxy},
        {"password", NULL, NULL, &c->password},
        {"proxy", NULL, NULL, &c->proxy},
        {"stall_s", NULL, &net->stall_s, NULL},
        {"tls_unverified", &net->tls_unverified, NULL, NULL},
        {"tries", NULL, &net->tries, NULL},
        {"untrusted", &net->untrusted, NULL, NULL},
        {"user", NULL, NULL, &c->user},
    };

    if (zr_json_has_key(v, "headers"))
        return read_headers(c, v);
    if (zr_json_has_key(v, "bearer_token"))
        return read_token(c, v);
    for (size_t i = 0; i < ZR_COUNT(options); i++) {
        if (!zr_json_has_key(v, options[i].name))
            continue;
        if (options[i].flag)
            return read_config_bool(c, v, options[i].flag);
        if (options[i].number)
            return read_config_number(c, v, options[i].number);
        return read_config_text(c, v, options[i].text);
    }
    for (size_t i = 0; i < c->own->n; i++)
        if (zr_json_has_key(v, c->own->option[i].name))
            return c->own->option[i].flag ? read_config_bool(c, v, c->own->option[i].flag)
                                          : read_config_text(c, v, &c->own_at[i]);
    return refuse_unknown(c, v->key);
}

/* Appends "user:password", if there is a user. */
static zarr_status join_user(struct http_config *c, const char *user_info, size_t *at)
{
    struct zr_str *block = &c->o->block;
    struct zr_str both;
    zarr_status st = ZARR_OK;

    *at = 0;
    zr_str_init(&both, block->alloc);
    if (user_info) /* so that the text does not move, and leaves no copies */
        ZR_TRY(zr_grow(both.alloc, &both.ptr, &both.cap, zr_add_cap(strlen(user_info), 1),
                       1, c->err));
    if (user_info && !zr_url_decode(&both, user_info, strlen(user_info)))
        ZR_FAIL(c->err, ZARR_ERR_INVALID, "the user info of the URL is malformed");
    if (!user_info && c->password && !c->user)
        ZR_LEAVE(refuse_config(c, "password", "given without \"user\""));
    if (!user_info && c->user)
        zr_str_printf(&both, "%s:%s", block->ptr + c->user - 1,
                      c->password ? block->ptr + c->password - 1 : "");
    ZR_TRY(zr_str_status(&both, c->err));
    if (both.bytes > 0) {
        *at = block->bytes + 1;
        zr_str_append(block, zr_str_text(&both), both.bytes + 1);
        st = zr_str_status(block, c->err);
    }
out:
    if (both.ptr)
        zr_wipe(both.ptr, both.cap);
    zr_str_deinit(&both);
    return st;
}

/* Sets the pointers: the block grows no more. */
static void set_texts(struct http_config *c, size_t both)
{
    struct zr_http_options *o = c->o;
    const struct {
        const char **to;
        size_t at;
    } texts[] = {
        {&o->net.ca_file, c->ca_file},       {&o->net.ca_folder, c->ca_folder},
        {&o->net.netrc_file, c->netrc_file}, {&o->net.no_proxy, c->no_proxy},
        {&o->net.proxy, c->proxy},           {&o->net.user_password, both},
    };

    for (size_t i = 0; i < ZR_COUNT(texts); i++)
        *texts[i].to = texts[i].at ? o->block.ptr + texts[i].at - 1 : NULL;
    for (size_t i = 0; i < c->n_headers; i++)
        o->headers[i] = o->block.ptr + c->header[i] - 1;
    for (size_t i = 0; i < c->own->n; i++)
        if (c->own_at[i])
            *c->own->option[i].text = o->block.ptr + c->own_at[i] - 1;
    o->headers[c->n_headers] = NULL;
    o->net.secret_headers = o->headers;
}

/* So that the block does not move, and leaves no copies of secrets. */
static zarr_status reserve_block(struct zr_str *block, const char *config,
                                 const char *user_info, zarr_error *err)
{
    static const char zeros[256];
    size_t n = 3 * (config ? strlen(config) : 0) + (user_info ? strlen(user_info) : 0);

    for (n += sizeof zeros; n >= sizeof zeros; n -= sizeof zeros)
        zr_str_append(block, zeros, sizeof zeros);
    zr_str_append(block, zeros, n);
    zr_str_clear(block);
    return zr_str_status(block, err);
}

zarr_status zr_http_options_read(struct zr_http_options *o,
                                 const struct zr_http_own_options *own,
                                 const char *config, const char *user_info,
                                 const struct zr_store_env *env, zarr_error *err)
{
    struct http_config c = {.o = o, .own = own, .err = err};
    struct zr_json_doc doc;
    size_t both = 0;
    zarr_status st = ZARR_OK;

    *o = (struct zr_http_options){.net = {.alloc = env->alloc, .log = env->log}};
    zr_str_init(&o->block, env->alloc);
    zr_json_doc_init(&doc, env->alloc);
    ZR_TRY(reserve_block(&o->block, config, user_info, err));
    if (config)
        ZR_TRY(zr_json_parse(&doc, config, strlen(config), &env->limits, err));
    for (const struct zr_json *v = doc.root ? doc.root->u.children.first : NULL; v;
         v = v->next)
        ZR_TRY(read_option(&c, v));
    ZR_TRY(join_user(&c, user_info, &both));
    set_texts(&c, both);
out:
    zr_arena_wipe(&doc.arena);
    zr_json_doc_deinit(&doc);
    if (st != ZARR_OK)
        zr_http_options_deinit(o);
    return st;
}

void zr_http_options_deinit(struct zr_http_options *o)
{
    if (o->block.ptr)
        zr_wipe(o->block.ptr, o->block.cap);
    zr_str_deinit(&o->block);
}
