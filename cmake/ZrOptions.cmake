# Build options, except those of optional libraries, which are in ZrDeps. Inside another
# project only the library is built, with that project's build type, output folders and
# warnings.
option(ZARR_BUILD_CLI "Build the command line program" ${PROJECT_IS_TOP_LEVEL})
option(ZARR_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ZARR_BUILD_EXAMPLES "Build the examples" ${PROJECT_IS_TOP_LEVEL})
option(ZARR_BUILD_BENCH "Build the benchmarks" ${PROJECT_IS_TOP_LEVEL})
option(ZARR_BUILD_PYTHON "Build the extension of the Python package (pyproject.toml does)" OFF)
set(_zr_cuda OFF)
if(PROJECT_IS_TOP_LEVEL AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND
   CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|aarch64)$")
    set(_zr_cuda ON)
endif()
option(ZARR_BUILD_CUDA "Build the plug-in for NVIDIA's GPUs, which needs nothing of CUDA" ${_zr_cuda})
option(ZARR_NEWER_CODECS "Fetch zstd and libdeflate by name from PyPI instead of taking the system's" OFF)
option(ZARR_INSTALL "Install zarrc" ${PROJECT_IS_TOP_LEVEL})
option(ZARR_WERROR "Treat warnings as errors" OFF)
option(ZARR_UNITY "Compile files of a room together: a build from nothing takes a third less time" OFF)
option(ZARR_FUZZ "Build libFuzzer programs (clang only)" OFF)
option(ZARR_COVERAGE "Instrument for gcov" OFF)
set(ZARR_SANITIZE "" CACHE STRING "Sanitizers, comma separated: address,undefined or thread")

# The module uses descriptors of Fortran 2018, which gfortran has from version 12 on. A
# sanitizer must be that of gfortran.
set(_zr_fortran OFF)
if(PROJECT_IS_TOP_LEVEL AND (ZARR_BUILD_TESTS OR ZARR_BUILD_EXAMPLES) AND
   NOT CMAKE_CROSSCOMPILING AND (CMAKE_C_COMPILER_ID STREQUAL "GNU" OR NOT (ZARR_SANITIZE OR ZARR_FUZZ)))
    find_program(CMAKE_Fortran_COMPILER NAMES $ENV{FC} gfortran)
    if(CMAKE_Fortran_COMPILER MATCHES "gfortran")
        execute_process(COMMAND "${CMAKE_Fortran_COMPILER}" -dumpversion
                        OUTPUT_VARIABLE _zr_version OUTPUT_STRIP_TRAILING_WHITESPACE)
        if(_zr_version VERSION_GREATER_EQUAL 12)
            set(_zr_fortran ON)
        endif()
    endif()
endif()
option(ZARR_BUILD_FORTRAN "Build the Fortran module; its source is installed in any case" ${_zr_fortran})

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

# Objects that were compiled before come from ccache, where it is installed. A project
# around this one chooses for itself.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_C_COMPILER_LAUNCHER)
    find_program(ZARR_CCACHE ccache)
    mark_as_advanced(ZARR_CCACHE)
    if(ZARR_CCACHE)
        set(CMAKE_C_COMPILER_LAUNCHER "${ZARR_CCACHE}")
    endif()
endif()
