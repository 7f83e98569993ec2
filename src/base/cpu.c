/*
 * base/cpu.c - which instruction sets may be used. The compiler's runtime asks the CPU
 * when the program is loaded. The question traps in a virtual machine, so it is not asked
 * again. Here its answers become our bits, without those that ZARRC_DISABLE_CPU names,
 * for testing the portable paths on a good CPU. Names are separated by commas: sse42,
 * ssse3, avx2, pclmul, fsrm, all. Intel has had FSRM and GFNI since Ice Lake, and
 * compilers know only the second. Zen 3 has FSRM, too, but slow at some addresses.
 * Thread class: frozen once the library is loaded.
 */
#include "base/base.h"

#include <stdlib.h>
#include <string.h>

uint32_t zr_cpu_features;

static bool cpu_name_is(const char *name, size_t n, const char *known)
{
    return strlen(known) == n && memcmp(name, known, n) == 0;
}

static uint32_t cpu_parse_names(const char *list)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } known[] = {
        {"sse42", ZR_CPU_SSE42}, {"avx2", ZR_CPU_AVX2}, {"pclmul", ZR_CPU_PCLMUL},
        {"ssse3", ZR_CPU_SSSE3}, {"fsrm", ZR_CPU_FSRM}, {"all", UINT32_MAX},
    };
    uint32_t bits = 0;

    while (list && *list) {
        const size_t n = strcspn(list, ",");

        for (size_t i = 0; i < ZR_COUNT(known); i++)
            if (cpu_name_is(list, n, known[i].name))
                bits |= known[i].bits;
        list += n + (list[n] == ',');
    }
    return bits;
}

static uint32_t cpu_detect(void)
{
    uint32_t bits = 0;

#if (defined(__x86_64__) || defined(__i386__)) && defined(__GNUC__)
    __builtin_cpu_init();
    bits |= __builtin_cpu_supports("ssse3") ? ZR_CPU_SSSE3 : 0U;
    bits |= __builtin_cpu_supports("sse4.2") ? ZR_CPU_SSE42 : 0U;
    bits |= __builtin_cpu_supports("avx2") ? ZR_CPU_AVX2 : 0U;
    bits |= __builtin_cpu_supports("pclmul") ? ZR_CPU_PCLMUL : 0U;
    if (__builtin_cpu_is("intel") && __builtin_cpu_supports("gfni"))
        bits |= ZR_CPU_FSRM;
#endif
    return bits & ~cpu_parse_names(getenv("ZARRC_DISABLE_CPU"));
}

__attribute__((constructor)) static void cpu_install(void)
{
    zr_cpu_features = cpu_detect();
}
