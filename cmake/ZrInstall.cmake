# Installed: both libraries, headers, zarrc.pc, zarrcConfig.cmake, man pages and
# completions. The static target is apart: its users need the foreign libraries.
#
# pkg-config --static can only append words to those of the shared library, but ld takes
# -lzarrc from the first folder of -L that has it. So zarrc.pc requires libzarrc.pc, and
# its private words, which come first, name a folder with the archive alone.
include(CMakePackageConfigHelpers)

install(TARGETS zarrc_shared EXPORT zarrcTargets)
install(TARGETS zarrc_static EXPORT zarrcStaticTargets)
install(DIRECTORY include/zarrc TYPE INCLUDE FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
# Each Fortran compiler has module files of its own, so programs compile the module.
set(ZR_FORTRAN_DIR "${CMAKE_INSTALL_DATADIR}/zarrc/fortran")
install(FILES fortran/zarrc.f90 fortran/zarrc_fortran.c fortran/CMakeLists.txt
        DESTINATION "${ZR_FORTRAN_DIR}")

# The words of zarrc.pc and of zarrcConfig.cmake that name foreign libraries.
set(ZR_PC_REQUIRES "")
set(ZR_PC_LIBS "")
set(ZR_CONFIG_FIND "")
foreach(name IN LISTS ZR_LIBS)
    if(DEFINED ZR_DEP_${name}_MODULE)
        list(APPEND ZR_PC_REQUIRES ${ZR_DEP_${name}_MODULE})
        string(APPEND ZR_CONFIG_FIND
               "    pkg_check_modules(ZR_PC_${name} IMPORTED_TARGET QUIET ${ZR_DEP_${name}_MODULE})\n")
    elseif(NOT name STREQUAL "threads" AND NOT TARGET zr_newer_${name}) # -pthread is in the template
        list(APPEND ZR_PC_LIBS ${ZR_DEP_${name}_TARGET})
    endif()
endforeach()
list(JOIN ZR_PC_REQUIRES ", " ZR_PC_REQUIRES)
list(JOIN ZR_PC_LIBS " " ZR_PC_LIBS)
# The .pc files find their prefix from its own place: installs may be moved.
set(_zr_prefix "${CMAKE_INSTALL_PREFIX}")
file(RELATIVE_PATH ZR_PC_PREFIX "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${_zr_prefix}")
string(REGEX REPLACE "/$" "" ZR_PC_PREFIX "${ZR_PC_PREFIX}")
file(RELATIVE_PATH ZR_PC_LIBDIR "${_zr_prefix}" "${CMAKE_INSTALL_FULL_LIBDIR}")
file(RELATIVE_PATH ZR_PC_FORTRANDIR "${_zr_prefix}" "${CMAKE_INSTALL_FULL_DATADIR}/zarrc/fortran")
file(RELATIVE_PATH ZR_PC_INCLUDEDIR "${_zr_prefix}" "${CMAKE_INSTALL_FULL_INCLUDEDIR}")
foreach(pc zarrc.pc libzarrc.pc)
    configure_file(cmake/${pc}.in ${pc} @ONLY)
    install(FILES "${PROJECT_BINARY_DIR}/${pc}" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
set(_zr_archive "${CMAKE_STATIC_LIBRARY_PREFIX}zarrc${CMAKE_STATIC_LIBRARY_SUFFIX}")
file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/static")
file(CREATE_LINK "../../${_zr_archive}" "${PROJECT_BINARY_DIR}/static/${_zr_archive}" SYMBOLIC)
install(FILES "${PROJECT_BINARY_DIR}/static/${_zr_archive}"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/zarrc/static")

set(_zr_config "${CMAKE_INSTALL_LIBDIR}/cmake/zarrc")
configure_package_config_file(cmake/zarrcConfig.cmake.in zarrcConfig.cmake
                              INSTALL_DESTINATION "${_zr_config}" PATH_VARS ZR_FORTRAN_DIR)
write_basic_package_version_file(zarrcConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/zarrcConfig.cmake" "${PROJECT_BINARY_DIR}/zarrcConfigVersion.cmake"
        DESTINATION "${_zr_config}")
install(EXPORT zarrcTargets NAMESPACE zarrc:: DESTINATION "${_zr_config}")
install(EXPORT zarrcStaticTargets NAMESPACE zarrc:: DESTINATION "${_zr_config}")

set(_zr_sections 3 7)
if(TARGET zarrc_cli)
    list(PREPEND _zr_sections 1)
endif()
foreach(section IN LISTS _zr_sections)
    file(GLOB _zr_man CONFIGURE_DEPENDS "man/*.${section}") # generated pages: not listable by name
    if(_zr_man)
        install(FILES ${_zr_man} DESTINATION "${CMAKE_INSTALL_MANDIR}/man${section}")
    endif()
endforeach()
# A page for each function: those that share a page with another one name it.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS man/links.txt)
file(STRINGS man/links.txt _zr_links REGEX "^zarr_")
foreach(link IN LISTS _zr_links)
    string(REGEX MATCH "^([^ ]+) ([^ ]+)$" _ "${link}")
    file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/man3/${CMAKE_MATCH_1}" CONTENT ".so man3/${CMAKE_MATCH_2}\n")
    install(FILES "${PROJECT_BINARY_DIR}/man3/${CMAKE_MATCH_1}" DESTINATION "${CMAKE_INSTALL_MANDIR}/man3")
endforeach()
if(TARGET zarrc_cli)
    install(TARGETS zarrc_cli)
endif()
