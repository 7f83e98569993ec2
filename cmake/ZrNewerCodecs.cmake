# ZARR_NEWER_CODECS: libzstd and libdeflate come from source packages that newer-codecs.txt
# names, instead of from the system. They are compiled here and become a part of libzarrc,
# which exports none of their names. scripts/sdists fetches the packages, with pip's
# settings, unless ZARR_NEWER_CODECS_DIR has them already, and checks each sha256.
find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(ZARR_NEWER_CODECS_DIR "${PROJECT_BINARY_DIR}/newer-codecs" CACHE PATH
    "Where the source packages of ZARR_NEWER_CODECS are, or are fetched to")
set(_zr_list "${PROJECT_SOURCE_DIR}/cmake/newer-codecs.txt")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${_zr_list}")
execute_process(
    COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/scripts/sdists"
            "${ZARR_NEWER_CODECS_DIR}" "${_zr_list}"
    RESULT_VARIABLE _zr_failed)
if(_zr_failed)
    message(FATAL_ERROR " ZARR_NEWER_CODECS: the source packages of cmake/newer-codecs.txt cannot be fetched into ${ZARR_NEWER_CODECS_DIR}")
endif()

# zr_newer_package(<out> <name>): the folder of an unpacked package
function(zr_newer_package out name)
    file(STRINGS "${_zr_list}" line REGEX "^${name} ")
    string(REGEX MATCH "^${name} ([^ ]+) ([0-9a-f]+)" _ "${line}")
    string(REPLACE "-" "_" stem "${name}-")
    string(REGEX REPLACE "_$" "-${CMAKE_MATCH_1}" stem "${stem}")
    set(sources "${PROJECT_BINARY_DIR}/newer-codecs/${CMAKE_MATCH_2}")
    if(NOT EXISTS "${sources}/${stem}")
        file(ARCHIVE_EXTRACT INPUT "${ZARR_NEWER_CODECS_DIR}/${stem}.tar.gz" DESTINATION "${sources}")
    endif()
    set(${out} "${sources}/${stem}" PARENT_SCOPE)
endfunction()

# zr_newer_codec(<short name> <version> <licence> INCLUDE <folder> SOURCES <file>...)
# The library as the target zr_newer_<short name>. Its code is not ours: no warnings.
function(zr_newer_codec name version licence)
    cmake_parse_arguments(PARSE_ARGV 3 N "" "INCLUDE" "SOURCES")
    if(NOT N_SOURCES OR NOT EXISTS "${licence}")
        message(FATAL_ERROR "ZARR_NEWER_CODECS: the package of ${name} lacks sources or a licence")
    endif()
    add_library(zr_newer_${name} STATIC ${N_SOURCES})
    target_include_directories(zr_newer_${name} SYSTEM INTERFACE "${N_INCLUDE}")
    target_compile_options(zr_newer_${name} PRIVATE -w -O3)
    set_target_properties(zr_newer_${name} PROPERTIES C_EXTENSIONS ON)
    set(ZR_DEP_${name}_TARGET zr_newer_${name} PARENT_SCOPE)
    set(ZR_DEP_${name}_VERSION "${version} (a part of libzarrc)" PARENT_SCOPE)
    set_property(GLOBAL APPEND PROPERTY ZR_NEWER ${name})
    if(DEFINED SKBUILD_METADATA_DIR)
        install(FILES "${licence}" DESTINATION "${SKBUILD_METADATA_DIR}/licenses" RENAME "${name}")
    elseif(ZARR_INSTALL)
        install(FILES "${licence}" DESTINATION "${CMAKE_INSTALL_DOCDIR}" RENAME "LICENSE.${name}")
    endif()
endfunction()

# zr_newer_version(<out> <header> <macro>...): the numbers of these macros with dots between
function(zr_newer_version out header)
    file(READ "${header}" text)
    set(numbers "")
    foreach(macro IN LISTS ARGN)
        string(REGEX MATCH "#define ${macro}[ \t]+([0-9]+)" _ "${text}")
        list(APPEND numbers ${CMAKE_MATCH_1})
    endforeach()
    list(JOIN numbers "." numbers)
    set(${out} "${numbers}" PARENT_SCOPE)
endfunction()

# zstd's decoder of Huffman codes is in assembly for x86-64.
enable_language(ASM)
zr_newer_package(_zr_from backports-zstd)
set(_zr_from "${_zr_from}/src/c/zstd")
file(GLOB _zr_sources "${_zr_from}/lib/common/*.c" "${_zr_from}/lib/compress/*.c" "${_zr_from}/lib/decompress/*.[cS]")
zr_newer_version(_zr_version "${_zr_from}/lib/zstd.h" ZSTD_VERSION_MAJOR ZSTD_VERSION_MINOR ZSTD_VERSION_RELEASE)
zr_newer_codec(zstd "${_zr_version}" "${_zr_from}/LICENSE" INCLUDE "${_zr_from}/lib" SOURCES ${_zr_sources})
target_compile_definitions(zr_newer_zstd PRIVATE ZSTD_LEGACY_SUPPORT=0 ZSTDLIB_VISIBLE= ZSTDERRORLIB_VISIBLE= XXH_NAMESPACE=ZSTD_)

zr_newer_package(_zr_from deflate)
set(_zr_from "${_zr_from}/libdeflate")
file(GLOB _zr_sources "${_zr_from}/lib/*.c" "${_zr_from}/lib/*/cpu_features.c")
zr_newer_version(_zr_version "${_zr_from}/libdeflate.h" LIBDEFLATE_VERSION_MAJOR LIBDEFLATE_VERSION_MINOR)
zr_newer_codec(libdeflate "${_zr_version}" "${_zr_from}/COPYING" INCLUDE "${_zr_from}" SOURCES ${_zr_sources})
