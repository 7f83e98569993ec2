# Compiler and linker flags, on one interface target that everything compiled
# here links privately. The only place that defines _GNU_SOURCE: openat2, OFD
# locks and MADV_HUGEPAGE are needed, so POSIX alone does not do.
add_library(zr_flags INTERFACE)
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g") # no -DNDEBUG: zr_assert stays on
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)

target_compile_definitions(zr_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(zr_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
    -Wmissing-prototypes -Wvla
    -ffp-contract=off # the same bits from every compiler and CPU
    -fno-common -fstack-protector-strong)
if(ZARR_WERROR)
    target_compile_options(zr_flags INTERFACE -Werror)
endif()

set(ZR_SANITIZE "${ZARR_SANITIZE}")
if(ZARR_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID STREQUAL "Clang")
        message(FATAL_ERROR "ZARR_FUZZ needs clang (preset: fuzz)")
    endif()
    set(ZR_SANITIZE "address,undefined")
    target_compile_options(zr_flags INTERFACE -fsanitize=fuzzer-no-link)
    target_link_options(zr_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

if(ZR_SANITIZE)
    target_compile_options(zr_flags INTERFACE
        -fsanitize=${ZR_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(zr_flags INTERFACE -fsanitize=${ZR_SANITIZE})
else()
    # A sanitizer's runtime stays undefined in a shared library, and has its own
    # checks in place of _FORTIFY_SOURCE: both only in plain builds.
    target_compile_options(zr_flags INTERFACE
        "$<$<NOT:$<CONFIG:Debug>>:-U_FORTIFY_SOURCE>"
        "$<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=3>")
    target_link_options(zr_flags INTERFACE -Wl,-z,defs)
endif()
target_link_options(zr_flags INTERFACE
    -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed)
if(ZARR_COVERAGE)
    target_compile_options(zr_flags INTERFACE --coverage -O1)
    target_link_options(zr_flags INTERFACE --coverage)
endif()
