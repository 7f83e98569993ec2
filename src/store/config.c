/*
 * store/config.c - the named options of a store, the text `config` of zarr_store_options.
 * Stores of plug-ins get the text; those of this room have a table of names, which are
 * other spellings of members of zarr_store_options. A value may be a secret that was
 * meant for another store, so no message quotes one, and the parsed text is wiped.
 * Thread class: plain functions.
 */
#include "json/json.h"
#include "store/store_int.h"

#include <string.h>

/* Says which options there are. */
static zarr_status config_refuse_name(const struct zr_store_native *native,
                                      const char *kind, const char *name,
                                      const struct zr_store_env *env, zarr_error *err)
{
    const size_t n = native ? native->n_options : 0;
    struct zr_str names;

    zr_str_init(&names, env->alloc);
    for (size_t i = 0; i < n; i++)
        zr_str_printf(&names, "%s%s",
                      i == 0       ? "; its options are "
                      : i + 1 == n ? " and "
                                   : ", ",
                      native->options[i].name);
    zr_fail(err, ZARR_ERR_INVALID,
            "zarr_store_options.config: stores of kind %s have no option \"%s\"%s", kind,
            name, zr_str_text(&names));
    zr_str_deinit(&names);
    return ZARR_ERR_INVALID;
}

/* The place of the value among the choices, from 1 on; 0: it is none of them. */
static uint32_t config_choice(const char *choices, const char *value)
{
    const size_t n = strlen(value);

    for (uint32_t i = 1; n > 0 && *choices; i++) {
        const size_t m = strcspn(choices, "|");

        if (m == n && memcmp(choices, value, n) == 0)
            return i;
        choices += m + (choices[m] == '|');
    }
    return 0;
}

static zarr_status config_set(zarr_store_options *o, const struct zr_store_option *option,
                              const char *kind, const struct zr_json *v, zarr_error *err)
{
    const char *text = zr_json_string(v);
    uint64_t number = 0;
    uint32_t value = 0;

    if (option->choices) {
        value = text ? config_choice(option->choices, text) : 0;
        if (value == 0)
            return zr_fail(
                err, ZARR_ERR_INVALID,
                "zarr_store_options.config: the option \"%s\" of stores of kind %s is "
                "one of %s",
                option->name, kind, option->choices);
    } else {
        if ((text ? !zr_parse_u64(text, strlen(text), &number)
                  : !zr_json_u64(v, &number)) ||
            number > UINT32_MAX)
            return zr_fail(
                err, ZARR_ERR_INVALID,
                "zarr_store_options.config: the option \"%s\" of stores of kind %s is "
                "a number below 2^32",
                option->name, kind);
        value = (uint32_t)number;
    }
    memcpy((char *)o + option->offset, &value, sizeof value);
    return ZARR_OK;
}

static zarr_status config_set_name(zarr_store_options *o,
                                   const struct zr_store_native *native, const char *kind,
                                   const struct zr_json *v,
                                   const struct zr_store_env *env, zarr_error *err)
{
    for (size_t i = 0; native && i < native->n_options; i++)
        if (zr_json_has_key(v, native->options[i].name))
            return config_set(o, &native->options[i], kind, v, err);
    return config_refuse_name(native, kind, v->key, env, err);
}

zarr_status zr_store_config_read(zarr_store_options *o, bool is_foreign,
                                 const struct zr_store_native *native, const char *kind,
                                 const struct zr_store_env *env, zarr_error *err)
{
    struct zr_json_doc doc;
    zarr_status st = ZARR_OK;

    if (!o->config)
        return ZARR_OK;
    zr_json_doc_init(&doc, env->alloc);
    st = zr_json_parse(&doc, o->config, strlen(o->config), &env->limits, err);
    if (st == ZARR_ERR_CORRUPT)
        st = ZARR_ERR_INVALID;
    if (st != ZARR_OK)
        ZR_TRY(zr_prefix(err, st, "zarr_store_options.config"));
    if (!zr_json_is(doc.root, ZR_JSON_OBJECT))
        ZR_FAIL(err, ZARR_ERR_INVALID,
                "zarr_store_options.config is not an object but a %s",
                zr_json_type_text(doc.root));
    if (is_foreign)
        goto out; /* the store reads them */
    for (const struct zr_json *v = doc.root->u.children.first; v; v = v->next)
        ZR_TRY(config_set_name(o, native, kind, v, env, err));
out:
    zr_arena_wipe(&doc.arena);
    zr_json_doc_deinit(&doc);
    return st;
}
