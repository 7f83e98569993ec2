/*
 * json/equal.c - compares two JSON values. Members may come in any order. Strings compare
 * by their unescaped bytes. Numbers compare by value, as decimal digits and never as
 * doubles, so that 2^53+1 differs from 2^53. The walk keeps one position a level in plain
 * arrays. Members are found by lookup.c.
 * Thread class: frozen.
 */
#include "json_int.h"

#include <string.h>

/* A literal as sign, digits without zeros at either end, and the power of ten of the
 * first one. */
struct decimal {
    bool negative;
    const char *first,
        *behind; /* may contain a '.'; begin and end equal: the value is zero */
    int64_t power;
    bool absurd; /* an exponent too large to compute with: equal only to the same spelling
                  */
};

static int64_t parse_exponent(const char *p, const char *end, bool *absurd)
{
    int64_t e = 0;
    bool negative = p < end && *p == '-';

    p += p < end && (*p == '-' || *p == '+');
    for (; p < end && !*absurd; p++) {
        e = e * 10 + (*p - '0');
        *absurd = e >= INT64_C(1) << 56;
    }
    return negative ? -e : e;
}

static struct decimal parse_decimal(const struct zr_json *v)
{
    struct decimal d = {0};
    const char *p = v->u.text.ptr, *end = p + v->u.text.bytes;
    const char *dot = NULL, *stop;

    d.negative = p < end && *p == '-';
    p += d.negative;
    for (stop = p; stop < end && *stop != 'e' && *stop != 'E'; stop++)
        if (*stop == '.')
            dot = stop;
    d.first = p;
    while (d.first < stop && (*d.first == '0' || *d.first == '.'))
        d.first++;
    d.behind = stop;
    while (d.behind > d.first && (d.behind[-1] == '0' || d.behind[-1] == '.'))
        d.behind--;
    if (d.first == d.behind)
        return d;
    d.power = (dot ? dot : stop) - d.first;
    d.power += d.power < 0; /* the '.' is one of the characters between */
    if (stop < end)
        d.power += parse_exponent(stop + 1, end, &d.absurd);
    return d;
}

static bool same_digits(const struct decimal *a, const struct decimal *b)
{
    const char *p = a->first, *q = b->first;

    while (p < a->behind && q < b->behind) {
        if (*p == '.')
            p++;
        if (*q == '.')
            q++;
        if (*p++ != *q++)
            return false;
    }
    return p == a->behind && q == b->behind;
}

static bool same_number(const struct zr_json *v, const struct zr_json *w)
{
    const char *s = v->u.text.ptr, *t = w->u.text.ptr;
    struct decimal a, b;

    if (v->u.text.bytes == w->u.text.bytes && memcmp(s, t, v->u.text.bytes) == 0)
        return true;
    if (strpbrk(s, "NI") ||
        strpbrk(t, "NI")) /* NaN and Infinity tokens have one spelling each */
        return false;
    a = parse_decimal(v);
    b = parse_decimal(w);
    return !a.absurd && !b.absurd && a.negative == b.negative && a.power == b.power &&
           same_digits(&a, &b);
}

/* Compares everything except the children. */
static bool same_node(const struct zr_json *a, const struct zr_json *b)
{
    if (a->type != b->type)
        return false;
    if (a->type == ZR_JSON_NUMBER)
        return same_number(a, b);
    if (a->type == ZR_JSON_STRING)
        return a->u.text.bytes == b->u.text.bytes &&
               memcmp(a->u.text.ptr, b->u.text.ptr, a->u.text.bytes) == 0;
    return a->type < ZR_JSON_ARRAY || a->u.children.n == b->u.children.n;
}

struct equal_level {
    const struct zr_json *a; /* next child */
    const struct zr_json *b; /* in arrays: next child */
    struct zr_json_lookup in_b;
};

/* Moves to the next pair of children. Returns false at the end of the level, and if *b
 * becomes NULL there is no partner. */
static bool equal_next(struct equal_level *l, const struct zr_json **a,
                       const struct zr_json **b)
{
    *a = l->a;
    if (!*a)
        return false;
    l->a = (*a)->next;
    if (l->in_b.object->type == ZR_JSON_OBJECT) {
        *b = zr_json_lookup_get(&l->in_b, (*a)->key, (*a)->key_bytes);
    } else {
        *b = l->b;
        l->b = l->b->next;
    }
    return true;
}

static void equal_pop(struct zr_json_stack *levels)
{
    struct equal_level *l = zr_json_stack_top(levels);

    zr_json_lookup_end(&l->in_b);
    levels->depth--;
}

bool zr_json_equal(const struct zr_json *a, const struct zr_json *b)
{
    struct zr_json_stack levels;
    struct equal_level *l;
    bool equal = true;

    if (!a || !b)
        return a == b;
    zr_json_stack_init(&levels, sizeof *l, NULL);
    for (;;) {
        equal = b && same_node(a, b);
        if (equal && a->type >= ZR_JSON_ARRAY && a->u.children.n > 0) {
            l = zr_json_stack_push(&levels);
            equal = l != NULL;
            if (equal)
                *l = (struct equal_level){
                    a->u.children.first, b->u.children.first, {.object = b}};
        }
        while (equal && levels.depth > 0 &&
               !equal_next(zr_json_stack_top(&levels), &a, &b))
            equal_pop(&levels);
        if (!equal || levels.depth == 0)
            break;
    }
    while (levels.depth > 0)
        equal_pop(&levels);
    zr_json_stack_deinit(&levels);
    return equal;
}
