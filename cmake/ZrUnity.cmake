# Target unity: all of src/ as one translation unit. It fails when two files use
# one static name for two things, and keeps an amalgamation possible.
get_property(_zr_sources GLOBAL PROPERTY ZR_SOURCES)
set(_zr_text "")
foreach(source IN LISTS _zr_sources)
    string(APPEND _zr_text "#include \"${source}\"\n")
endforeach()
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/unity.c" CONTENT "${_zr_text}")
add_library(unity OBJECT EXCLUDE_FROM_ALL "${PROJECT_BINARY_DIR}/unity.c")
target_include_directories(unity PRIVATE "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src")
target_compile_definitions(unity PRIVATE ZARR_BUILDING
    $<TARGET_PROPERTY:zr_flags,INTERFACE_COMPILE_DEFINITIONS>)
# Names are all that it looks at: without optimisation it takes a fraction of the time.
target_compile_options(unity PRIVATE -O0 -g0 -Wall -Wextra -Werror)
target_link_libraries(unity PRIVATE ${ZR_LIB_TARGETS})
