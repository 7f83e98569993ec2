/*
 * net/address.c - which addresses are public. The list is IANA's of special-purpose
 * addresses (RFC 6890) and its updates.
 *
 * Thread class: plain functions.
 */
#include "net/net_int.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

struct address_range {
    uint8_t prefix[16];
    uint32_t bits;
};

static const struct address_range address_v4[] = {
    {{0}, 8},             /* this network */
    {{10}, 8},            /* private */
    {{100, 64}, 10},      /* carrier's NAT */
    {{127}, 8},           /* loopback */
    {{169, 254}, 16},     /* link-local, also of cloud metadata */
    {{172, 16}, 12},      /* private */
    {{192, 0, 0}, 24},    /* protocol assignments */
    {{192, 0, 2}, 24},    /* documentation */
    {{192, 168}, 16},     /* private */
    {{198, 18}, 15},      /* benchmarks */
    {{198, 51, 100}, 24}, /* documentation */
    {{203, 0, 113}, 24},  /* documentation */
    {{224}, 3}            /* multicast, reserved, broadcast */
};
/* Public is what is in 2000::/3 and in none of these. */
static const struct address_range address_v6[] = {
    {{0x20, 0x01, 0x00}, 23},       /* protocol assignments, Teredo */
    {{0x20, 0x01, 0x0d, 0xb8}, 32}, /* documentation */
    {{0x3f, 0xff}, 20}              /* documentation */
};

static bool address_is_in(const uint8_t *a, const struct address_range *r)
{
    const uint32_t whole = r->bits / 8, rest = r->bits % 8;
    const uint8_t mask = (uint8_t)(0xFF00 >> rest);

    return memcmp(a, r->prefix, whole) == 0 &&
           (rest == 0 || (a[whole] & mask) == r->prefix[whole]);
}

static bool address_v4_is_private(const uint8_t *a)
{
    for (size_t i = 0; i < ZR_COUNT(address_v4); i++)
        if (address_is_in(a, &address_v4[i]))
            return true;
    return false;
}

static bool address_v6_is_private(const uint8_t *a)
{
    static const struct address_range mapped = {{[10] = 0xff, [11] = 0xff}, 96};
    static const struct address_range nat64 = {{0x00, 0x64, 0xff, 0x9b}, 96};
    static const struct address_range six_to_four = {{0x20, 0x02}, 16};

    if (address_is_in(a, &mapped) || address_is_in(a, &nat64))
        return address_v4_is_private(a + 12);
    if (address_is_in(a, &six_to_four))
        return address_v4_is_private(a + 2);
    for (size_t i = 0; i < ZR_COUNT(address_v6); i++)
        if (address_is_in(a, &address_v6[i]))
            return true;
    return (a[0] & 0xE0) != 0x20;
}

bool zr_net_is_private(const struct sockaddr *address)
{
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;

    if (address->sa_family == AF_INET) {
        memcpy(&v4, address, sizeof v4);
        return address_v4_is_private((const uint8_t *)&v4.sin_addr);
    }
    if (address->sa_family == AF_INET6) {
        memcpy(&v6, address, sizeof v6);
        return address_v6_is_private(v6.sin6_addr.s6_addr);
    }
    return true;
}

bool zr_net_is_private_text(const char *text)
{
    uint8_t a[16];

    if (inet_pton(AF_INET, text, a) == 1)
        return address_v4_is_private(a);
    return inet_pton(AF_INET6, text, a) != 1 || address_v6_is_private(a);
}
