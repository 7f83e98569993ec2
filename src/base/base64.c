/*
 * base/base64.c - RFC 4648 base64, which v2 metadata uses for fill values of bytes and
 * structs. Written text has padding. Text is read with or without it; line breaks and the
 * URL alphabet are refused. Unused low bits of the last character are ignored, as Python
 * does.
 * Thread class: plain functions.
 */
#include "base/base.h"

static const char base64_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void zr_base64_encode(struct zr_str *out, const void *bytes, size_t n)
{
    const uint8_t *b = (const uint8_t *)bytes;

    for (size_t i = 0; i < n; i += 3) {
        const size_t have = ZR_MIN(n - i, (size_t)3);
        const uint32_t bits = (uint32_t)b[i] << 16 |
                              (have > 1 ? (uint32_t)b[i + 1] << 8 : 0) |
                              (have > 2 ? (uint32_t)b[i + 2] : 0);
        const char four[4] = {
            base64_alphabet[bits >> 18],
            base64_alphabet[bits >> 12 & 63],
            have > 1 ? base64_alphabet[bits >> 6 & 63] : '=',
            have > 2 ? base64_alphabet[bits & 63] : '=',
        };
        zr_str_append(out, four, 4);
    }
}

/* 64 and above: not in the alphabet */
static uint32_t base64_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (uint32_t)(c - 'A');
    if (c >= 'a' && c <= 'z')
        return (uint32_t)(c - 'a') + 26;
    if (c >= '0' && c <= '9')
        return (uint32_t)(c - '0') + 52;
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

bool zr_base64_decode(const char *text, size_t n, void *out, size_t cap,
                      size_t *out_bytes)
{
    uint8_t *to = (uint8_t *)out;
    uint32_t bits = 0;
    size_t done = 0, padding = 0;

    while (padding < 2 && n > 0 && text[n - 1] == '=') {
        padding++;
        n--;
    }
    if (n % 4 == 1 || (padding && padding > 4 - n % 4) || (padding && n % 4 == 0))
        return false;
    if (n / 4 * 3 + (n % 4 ? n % 4 - 1 : 0) > cap)
        return false;
    for (size_t i = 0; i < n; i++) {
        const uint32_t v = base64_value(text[i]);

        if (v > 63)
            return false;
        bits = bits << 6 | v;
        if (i % 4) /* the second, third and fourth character each complete a byte */
            to[done++] = (uint8_t)(bits >> (6 - 2 * (i % 4)));
    }
    *out_bytes = done;
    return true;
}
