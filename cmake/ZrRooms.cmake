# The rooms, lowest first, and who may enter whom: both read from src/LAYERS,
# which scripts/check-layers enforces on the includes.
set(ZR_ROOMS "")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS src/LAYERS)
file(STRINGS "${PROJECT_SOURCE_DIR}/src/LAYERS" _zr_lines REGEX "^[a-z0-9/]+:")
foreach(line IN LISTS _zr_lines)
    string(REGEX MATCH "^([a-z0-9/]+):([^|]*)" _ "${line}")
    set(room ${CMAKE_MATCH_1})
    separate_arguments(below UNIX_COMMAND "${CMAKE_MATCH_2}")
    set(ZR_BELOW_${room} ${below}) # closed over: the rooms below are known already
    foreach(b IN LISTS below)
        list(APPEND ZR_BELOW_${room} ${ZR_BELOW_${b}})
    endforeach()
    list(REMOVE_DUPLICATES ZR_BELOW_${room})
    list(APPEND ZR_ROOMS ${room})
endforeach()

# zr_room(<name> SOURCES a.c b.c [LIBS zstd zlib ...])
# An OBJECT library zr_<name>, of a room in another one zr_<outer>_<name>; without sources
# an empty stand-in, so that the tree configures from the first day.
function(zr_room room)
    string(REPLACE "/" "_" name "${room}")
    cmake_parse_arguments(PARSE_ARGV 1 R "" "" "SOURCES;LIBS")
    if(R_UNPARSED_ARGUMENTS)
        message(FATAL_ERROR "zr_room(${room}): what is \"${R_UNPARSED_ARGUMENTS}\"?")
    endif()
    zr_dep_targets(libs ${R_LIBS})
    if(R_SOURCES)
        add_library(zr_${name} OBJECT ${R_SOURCES})
        set(scope PUBLIC)
        target_link_libraries(zr_${name} PRIVATE zr_flags)
        target_compile_definitions(zr_${name} PRIVATE ZARR_BUILDING)
        set_target_properties(zr_${name} PROPERTIES
            UNITY_BUILD ${ZARR_UNITY} UNITY_BUILD_BATCH_SIZE 16)
        list(TRANSFORM R_SOURCES PREPEND "${CMAKE_CURRENT_SOURCE_DIR}/")
        set_property(GLOBAL APPEND PROPERTY ZR_SOURCES ${R_SOURCES})
        set_property(GLOBAL APPEND PROPERTY ZR_OBJECTS $<TARGET_OBJECTS:zr_${name}>)
    else()
        add_library(zr_${name} INTERFACE)
        set(scope INTERFACE)
    endif()
    target_include_directories(zr_${name} ${scope}
        "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
    target_link_libraries(zr_${name} ${scope} ${libs})
    set_property(GLOBAL APPEND PROPERTY ZR_LIBS ${R_LIBS})
endfunction()

# zr_link_rooms(<target> <room>...): link the objects of these rooms and of all
# rooms below them, never of one above.
function(zr_link_rooms target)
    set(rooms ${ARGN})
    foreach(room IN LISTS ARGN)
        list(APPEND rooms ${ZR_BELOW_${room}})
    endforeach()
    list(REMOVE_DUPLICATES rooms)
    list(TRANSFORM rooms PREPEND "zr_")
    list(TRANSFORM rooms REPLACE "/" "_")
    target_link_libraries(${target} PRIVATE zr_flags ${rooms})
endfunction()
