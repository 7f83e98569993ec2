# Foreign libraries, always the system's, found by pkg-config. A room names one
# by the short name at the left: zr_room(impl ... LIBS zstd zlib).
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)

set(ZR_DEP_threads_TARGET Threads::Threads)
set(ZR_DEP_m_TARGET m)
set(ZR_DEP_dl_TARGET ${CMAKE_DL_LIBS})

# zr_dep(<short name> <pkg-config module> [REQUIRED])
function(zr_dep name module)
    pkg_check_modules(ZR_PC_${name} IMPORTED_TARGET GLOBAL ${ARGN} ${module})
    if(ZR_PC_${name}_FOUND)
        set(ZR_DEP_${name}_TARGET PkgConfig::ZR_PC_${name} PARENT_SCOPE)
        set(ZR_DEP_${name}_MODULE ${module} PARENT_SCOPE)
        set(ZR_DEP_${name}_VERSION ${ZR_PC_${name}_VERSION} PARENT_SCOPE)
    endif()
endfunction()

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

#      short name  pkg-config
zr_dep(zstd        libzstd    REQUIRED)
zr_dep(zlib        zlib       REQUIRED)
zr_dep(libdeflate  libdeflate REQUIRED)
zr_dep(lz4         liblz4     REQUIRED)
zr_dep(blosc       blosc      REQUIRED)
if(ZARR_BUILD_CLI)
    zr_dep(png     libpng     REQUIRED)
endif()
if(ZARR_BUILD_TESTS)
    zr_dep(cmocka  cmocka     REQUIRED)
endif()
