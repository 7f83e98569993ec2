# Compiler and linker flags, on one interface target that everything compiled
# here links privately. The only place that defines _GNU_SOURCE: openat2, OFD
# locks and MADV_HUGEPAGE are needed, so POSIX alone does not do.
add_library(zr_flags INTERFACE)
if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g") # no -DNDEBUG: zr_assert stays on
endif()
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)

target_compile_definitions(zr_flags INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
target_compile_options(zr_flags INTERFACE
    -ffp-contract=off # the same bits from every compiler and CPU
    -fno-common -fstack-protector-strong)
if(PROJECT_IS_TOP_LEVEL) # another project chooses its own warnings
    target_compile_options(zr_flags INTERFACE
        -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes
        -Wmissing-prototypes -Wvla)
endif()
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
    # checks in place of _FORTIFY_SOURCE: both only in plain builds. A parent project may
    # ask for a sanitizer in CMAKE_C_FLAGS. _FORTIFY_SOURCE needs an optimised build.
    target_compile_options(zr_flags INTERFACE
        "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE>"
        "$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-D_FORTIFY_SOURCE=3>")
    if(PROJECT_IS_TOP_LEVEL)
        target_link_options(zr_flags INTERFACE -Wl,-z,defs)
    endif()
endif()
target_link_options(zr_flags INTERFACE
    -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack -Wl,--as-needed)
if(ZARR_COVERAGE)
    target_compile_options(zr_flags INTERFACE --coverage -O1)
    target_link_options(zr_flags INTERFACE --coverage)
endif()
