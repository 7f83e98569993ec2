# Foreign libraries, always the system's, found by pkg-config. A room names one
# by the short name at the left: zr_room(impl ... LIBS zstd zlib). What links the
# library may be in any folder of a parent project. So no imported target of this
# folder is named here, and no plain name, which may be a target of the parent.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

set(ZR_DEP_threads_TARGET "${CMAKE_THREAD_LIBS_INIT}") # empty: part of the C library
set(ZR_DEP_m_TARGET -lm)
set(ZR_DEP_dl_TARGET "${CMAKE_DL_LIBS}")
list(TRANSFORM ZR_DEP_dl_TARGET PREPEND -l)

# zr_dep(<short name> <pkg-config module> REQUIRED|OPTIONAL)
function(zr_dep name module kind)
    if(kind STREQUAL "OPTIONAL")
        set(kind "")
        list(APPEND ZR_OPTIONAL ${name})
        set(ZR_OPTIONAL ${ZR_OPTIONAL} PARENT_SCOPE)
    endif()
    pkg_check_modules(ZR_PC_${name} IMPORTED_TARGET GLOBAL ${kind} ${module})
    if(ZR_PC_${name}_FOUND)
        set(ZR_DEP_${name}_TARGET PkgConfig::ZR_PC_${name} PARENT_SCOPE)
        set(ZR_DEP_${name}_MODULE ${module} PARENT_SCOPE)
        set(ZR_DEP_${name}_VERSION ${ZR_PC_${name}_VERSION} PARENT_SCOPE)
    endif()
endfunction()

# zr_dep_plain(<short name> <header> <library>): an optional one without a pkg-config file.
# Its link words are also those of zarrc.pc and of the installed static target.
function(zr_dep_plain name header library)
    list(APPEND ZR_OPTIONAL ${name})
    set(ZR_OPTIONAL ${ZR_OPTIONAL} PARENT_SCOPE)
    find_path(ZR_DEP_${name}_HEADER ${header})
    find_library(ZR_DEP_${name}_LIBRARY ${library})
    mark_as_advanced(ZR_DEP_${name}_HEADER ZR_DEP_${name}_LIBRARY)
    if(NOT ZR_DEP_${name}_HEADER OR NOT ZR_DEP_${name}_LIBRARY)
        return()
    endif()
    set(words -l${library})
    cmake_path(GET ZR_DEP_${name}_LIBRARY PARENT_PATH folder)
    if(NOT folder IN_LIST CMAKE_C_IMPLICIT_LINK_DIRECTORIES)
        list(PREPEND words "-L${folder}")
    endif()
    set(ZR_DEP_${name}_TARGET ${words} PARENT_SCOPE)
    if(NOT ZR_DEP_${name}_HEADER IN_LIST CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES)
        include_directories(SYSTEM "${ZR_DEP_${name}_HEADER}")
    endif()
endfunction()

# zr_dep_choice(<short name>): the option ZARR_WITH_<NAME> of an optional library: AUTO
# takes what is installed, ON demands it, OFF leaves it out. One that is taken becomes the
# word ZR_HAVE_<NAME> of the sources. What needs a missing one is still read as metadata
# and refused by name when data is wanted.
macro(zr_dep_choice name)
    string(TOUPPER ${name} upper)
    set(ZARR_WITH_${upper} AUTO CACHE STRING "lib${name}: AUTO, ON or OFF")
    set_property(CACHE ZARR_WITH_${upper} PROPERTY STRINGS AUTO ON OFF)
    if(ZARR_WITH_${upper} STREQUAL "OFF")
        unset(ZR_DEP_${name}_TARGET)
    elseif(NOT DEFINED ZR_DEP_${name}_TARGET AND ZARR_WITH_${upper} STREQUAL "ON")
        message(FATAL_ERROR "ZARR_WITH_${upper}: lib${name} is not installed")
    endif()
    if(DEFINED ZR_DEP_${name}_TARGET)
        add_compile_definitions(ZR_HAVE_${upper}=1)
    endif()
endmacro()

# zr_dep_targets(<out> <short name>...): the link targets of these names.
function(zr_dep_targets out)
    set(targets "")
    foreach(name IN LISTS ARGN)
        if(NOT DEFINED ZR_DEP_${name}_TARGET)
            message(FATAL_ERROR "unknown or missing library \"${name}\" (cmake/ZrDeps.cmake)")
        endif()
        list(APPEND targets ${ZR_DEP_${name}_TARGET})
    endforeach()
    set(${out} ${targets} PARENT_SCOPE)
endfunction()

set(ZR_OPTIONAL "")
#      short name  pkg-config
zr_dep(zstd        libzstd    REQUIRED)
zr_dep(zlib        zlib       REQUIRED)
zr_dep(libdeflate  libdeflate REQUIRED)
zr_dep(lz4         liblz4     REQUIRED)
zr_dep(blosc       blosc      REQUIRED)
zr_dep(lzma        liblzma    OPTIONAL)
zr_dep(snappy      snappy     OPTIONAL)
zr_dep_plain(bz2   bzlib.h    bz2)
zr_dep_plain(zfp   zfp.h      zfp)
foreach(name IN LISTS ZR_OPTIONAL)
    zr_dep_choice(${name})
endforeach()
if(ZARR_BUILD_CLI)
    zr_dep(png     libpng     REQUIRED)
endif()
if(ZARR_BUILD_TESTS)
    zr_dep(cmocka  cmocka     REQUIRED)
endif()
