# libzarrc.so.<major> and libzarrc.a, both from the rooms' objects. Users name them
# zarrc::zarrc and zarrc::zarrc_static; the plain name zarrc is free for a parent project.
get_property(ZR_OBJECTS GLOBAL PROPERTY ZR_OBJECTS)
get_property(ZR_LIBS GLOBAL PROPERTY ZR_LIBS)
# Users before what they use, as archives have to be linked: rooms are listed lowest
# first, and the libraries of a room likewise.
list(REMOVE_DUPLICATES ZR_LIBS)
list(REVERSE ZR_LIBS)
zr_dep_targets(ZR_LIB_TARGETS ${ZR_LIBS})

add_library(zarrc_shared SHARED ${ZR_OBJECTS})
add_library(zarrc_static STATIC ${ZR_OBJECTS})
add_library(zarrc::zarrc ALIAS zarrc_shared)
add_library(zarrc::zarrc_static ALIAS zarrc_static)
set_target_properties(zarrc_shared PROPERTIES
    LINKER_LANGUAGE C
    OUTPUT_NAME zarrc
    EXPORT_NAME zarrc
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}
    LINK_DEPENDS "${PROJECT_SOURCE_DIR}/src/zarrc.map")
set_target_properties(zarrc_static PROPERTIES LINKER_LANGUAGE C OUTPUT_NAME zarrc)
target_link_options(zarrc_shared PRIVATE "-Wl,--version-script=${PROJECT_SOURCE_DIR}/src/zarrc.map")
target_link_libraries(zarrc_shared PRIVATE zr_flags ${ZR_LIB_TARGETS})
# An archive contains the objects of the libraries that are compiled here.
get_property(_zr_newer GLOBAL PROPERTY ZR_NEWER)
foreach(name IN LISTS _zr_newer)
    target_sources(zarrc_static PRIVATE $<TARGET_OBJECTS:zr_newer_${name}>)
    list(REMOVE_ITEM ZR_LIB_TARGETS zr_newer_${name})
endforeach()
target_link_libraries(zarrc_static PRIVATE ${ZR_LIB_TARGETS})
foreach(target zarrc_shared zarrc_static)
    target_include_directories(${target} INTERFACE
        "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>"
        "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
endforeach()
if(PROJECT_IS_TOP_LEVEL)
    add_custom_target(zarrc DEPENDS zarrc_shared zarrc_static)
endif()
