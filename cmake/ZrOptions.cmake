# What a builder may choose. Optional features are AUTO, ON or OFF and all stand
# in the one table at the end; the core codecs are in every build.
option(ZARR_BUILD_CLI "Build the command line program" ON)
option(ZARR_BUILD_TESTS "Build the tests" ON)
option(ZARR_BUILD_EXAMPLES "Build the examples" ON)
option(ZARR_BUILD_BENCH "Build the benchmarks" ON)
option(ZARR_WERROR "Treat warnings as errors" OFF)
option(ZARR_FUZZ "Build libFuzzer programs (clang only)" OFF)
option(ZARR_COVERAGE "Instrument for gcov" OFF)
set(ZARR_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug, RelWithDebInfo or Release" FORCE)
endif()
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

# Optional libraries: AUTO takes what is installed, ON demands it, OFF leaves it out. What
# needs a missing one is still read as metadata and refused by name when data is wanted.
set(ZR_OPTIONAL bz2 lzma zfp)
foreach(name IN LISTS ZR_OPTIONAL)
    string(TOUPPER ${name} upper)
    set(ZARR_WITH_${upper} AUTO CACHE STRING "lib${name}: AUTO, ON or OFF")
    set_property(CACHE ZARR_WITH_${upper} PROPERTY STRINGS AUTO ON OFF)
endforeach()
