# What a builder may choose. Optional features are AUTO, ON or OFF and all stand
# in the one table at the end; the core codecs are in every build. As a part of
# another project, zarrc is the library alone, and the other project's build type,
# output folders and warnings hold.
option(ZARR_BUILD_CLI "Build the command line program" ${PROJECT_IS_TOP_LEVEL})
option(ZARR_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ZARR_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(ZARR_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(ZARR_INSTALL "Install zarrc" ${PROJECT_IS_TOP_LEVEL})
option(ZARR_WERROR "Treat warnings as errors" OFF)
option(ZARR_FUZZ "Build libFuzzer programs (clang only)" OFF)
option(ZARR_COVERAGE "Instrument for gcov" OFF)
set(ZARR_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined or thread")

if(PROJECT_IS_TOP_LEVEL)
    if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
        set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, RelWithDebInfo or Release" FORCE)
    endif()
    set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
    set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
    set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
    set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
endif()
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

# Optional libraries: AUTO takes what is installed, ON demands it, OFF leaves it out. What
# needs a missing one is still read as metadata and refused by name when data is wanted.
set(ZR_OPTIONAL bz2 lzma zfp)
foreach(name IN LISTS ZR_OPTIONAL)
    string(TOUPPER ${name} upper)
    set(ZARR_WITH_${upper} AUTO CACHE STRING "lib${name}: AUTO, ON or OFF")
    set_property(CACHE ZARR_WITH_${upper} PROPERTY STRINGS AUTO ON OFF)
endforeach()
