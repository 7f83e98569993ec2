# The version has one home: include/zarrc/version.h.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/../include/zarrc/version.h" _zr_lines
     REGEX "^#define ZARR_VERSION_STRING ")
if(NOT _zr_lines MATCHES "\"([0-9]+\\.[0-9]+\\.[0-9]+)")
    message(FATAL_ERROR "include/zarrc/version.h: no ZARR_VERSION_STRING \"x.y.z\"")
endif()
set(ZARRC_VERSION "${CMAKE_MATCH_1}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS include/zarrc/version.h)
