# zr_unit_test(<room>_<name> SOURCES test_x.c [ROOMS room...] [LIBS name...] [TIMEOUT s]
#              [THREADS | ONE_THREAD] [PLAIN] [SERVER])
# A cmocka program, linked with the objects of ROOMS (default: the room of its folder,
# tests/unit/<room>) and of all rooms below these, so that a broken upper room blocks no
# lower test. In its name the "/" of a room inside of another one is "_". Sources not
# named test_* are shared by the tests of a folder and compiled once. Target unit_<room>
# builds all programs of a room; ctest -R '^<room>_' runs them. A test that asks for more time than others starts before them. Exit
# code 77: skipped, with a reason on standard output. The label `threads`, for the
# thread sanitizer, is on all tests that have the thread pool below them; THREADS is for
# others that start threads, and ONE_THREAD for tests that use no pool. PLAIN is for tests
# that only plain builds have. SERVER starts the scripted HTTP server around the test.

# ZARR_TEST_FEW=1, as `make test` sets it, leaves out the one check of the address sanitizer
# that takes a fifth of the time. A quarantine of the default 256 MiB costs page faults.
set(ZR_AFTER_RETURN 1)
if(DEFINED ENV{ZARR_TEST_FEW})
    set(ZR_AFTER_RETURN 0)
endif()
set(ZR_TEST_ENV
    "ZR_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
    "ZR_BINARY_DIR=${PROJECT_BINARY_DIR}"
    "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=${ZR_AFTER_RETURN}:max_uar_stack_size_log=16:allocator_may_return_null=1:quarantine_size_mb=16"
    "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

# Seconds; a test may ask for more. It beats what ctest --timeout says.
set(ZR_TEST_TIMEOUT 60)
if(CMAKE_CROSSCOMPILING)
    set(ZR_TEST_TIMEOUT 1200) # qemu costs a factor of 30
elseif(ZR_SANITIZE)
    set(ZR_TEST_TIMEOUT 180) # the sanitizers cost a factor of 2 to 15
endif()

# What every program of the tests gets. gold links in half the time of the default linker,
# and -O1 compiles in two thirds of the time. Under the sanitizers, -O0 halves that again,
# and costs few tests time: those that compute much have -O1 in their CMakeLists.txt.
include(CheckLinkerFlag)
check_linker_flag(C -fuse-ld=gold ZR_HAVE_GOLD)
function(zr_test_target target)
    target_include_directories(${target} PRIVATE
        "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
    target_compile_options(${target} PRIVATE $<$<CONFIG:RelWithDebInfo>:-O1>)
    if(ZARR_SANITIZE)
        target_compile_options(${target} PRIVATE $<$<CONFIG:Debug>:-O0>)
    endif()
    if(ZR_HAVE_GOLD)
        target_link_options(${target} PRIVATE -fuse-ld=gold)
    endif()
endfunction()

# zr_threads_test(<target>): its test has the label `threads`. The target tests_threads
# builds all of these, and is what the thread sanitizer needs.
function(zr_threads_test target)
    if(NOT TARGET tests_threads)
        add_custom_target(tests_threads)
    endif()
    add_dependencies(tests_threads ${target})
endfunction()

# zr_sanitized(<target> <label variable> <source>...)
# Adds the label `sanitized`, unless a source asks for the address sanitizer, and so tests
# less under it. `make test` runs tests with this label under the address sanitizer only,
# which finds more, and builds the target tests_plain for the others.
function(zr_sanitized target out)
    foreach(source IN LISTS ARGN)
        file(STRINGS "${source}" found LIMIT_COUNT 1
             REGEX "__SANITIZE_ADDRESS__|ZR_NO_THREADED_FORK|SKIP_WITHOUT_THREADED_FORK|ZARRC_TEST_NVCOMP")
        if(found)
            return()
        endif()
    endforeach()
    set_property(GLOBAL APPEND PROPERTY ZR_SANITIZED ${target})
    set(${out} ${${out}} sanitized PARENT_SCOPE)
endfunction()

# zr_tests_plain(): the target tests_plain builds all that a build from nothing has, except
# the programs of tests with the label `sanitized`.
function(zr_tests_plain)
    get_property(sanitized GLOBAL PROPERTY ZR_SANITIZED)
    set(folders "${PROJECT_SOURCE_DIR}")
    add_custom_target(tests_plain)
    while(folders)
        list(POP_FRONT folders folder)
        get_property(below DIRECTORY "${folder}" PROPERTY SUBDIRECTORIES)
        list(APPEND folders ${below})
        get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
        list(REMOVE_ITEM targets ${sanitized} "")
        foreach(target IN LISTS targets)
            get_target_property(type ${target} TYPE)
            get_target_property(out ${target} EXCLUDE_FROM_ALL)
            if(NOT out AND type MATCHES "_LIBRARY$|EXECUTABLE" AND NOT type MATCHES "INTERFACE")
                add_dependencies(tests_plain ${target})
            endif()
        endforeach()
    endwhile()
endfunction()

# zr_shared_sources(<variable> <rooms> <source>...)
# Sets the variable to OBJECT libraries, one for each source that is not named test_*.
function(zr_shared_sources out rooms)
    list(FILTER ARGN EXCLUDE REGEX "^test_")
    file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}/tests" "${CMAKE_CURRENT_SOURCE_DIR}")
    string(REPLACE "/" "_" folder "${folder}")
    set(found "")
    foreach(source IN LISTS ARGN)
        get_filename_component(stem "${source}" NAME_WE)
        set(target shared_${folder}_${stem})
        if(NOT TARGET ${target})
            add_library(${target} OBJECT ${source})
            zr_link_rooms(${target} ${rooms})
            zr_test_target(${target})
            set_property(GLOBAL APPEND PROPERTY ZR_SANITIZED ${target}) # a plain test links it
        endif()
        list(APPEND found ${target})
    endforeach()
    set(${out} ${found} PARENT_SCOPE)
endfunction()

function(zr_unit_test name)
    cmake_parse_arguments(PARSE_ARGV 1 T "THREADS;ONE_THREAD;PLAIN;SERVER" "TIMEOUT" "SOURCES;ROOMS;LIBS")
    file(RELATIVE_PATH room "${PROJECT_SOURCE_DIR}/tests/unit" "${CMAKE_CURRENT_SOURCE_DIR}")
    string(REPLACE "/" "_" prefix "${room}")
    if(NOT room IN_LIST ZR_ROOMS OR NOT name MATCHES "^${prefix}_")
        message(FATAL_ERROR "zr_unit_test(${name}): tests of the room \"${room}\" are named ${prefix}_*")
    endif()
    if(NOT T_ROOMS)
        set(T_ROOMS ${room})
    endif()
    set(cost 0)
    if(T_TIMEOUT)
        set(cost ${T_TIMEOUT})
    endif()
    if(NOT T_TIMEOUT OR T_TIMEOUT LESS ZR_TEST_TIMEOUT)
        set(T_TIMEOUT ${ZR_TEST_TIMEOUT})
    endif()
    zr_dep_targets(libs cmocka ${T_LIBS})
    zr_shared_sources(shared "${T_ROOMS}" ${T_SOURCES})
    list(FILTER T_SOURCES INCLUDE REGEX "^test_")
    add_executable(test_${name} ${T_SOURCES})
    zr_link_rooms(test_${name} ${T_ROOMS})
    target_link_libraries(test_${name} PRIVATE ${libs} ${shared})
    zr_test_target(test_${name})
    set_target_properties(test_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    if(NOT TARGET unit_${prefix})
        add_custom_target(unit_${prefix})
    endif()
    add_dependencies(unit_${prefix} test_${name})
    set(labels unit)
    if(NOT T_PLAIN)
        zr_sanitized(test_${name} labels ${T_SOURCES})
    endif()
    foreach(room IN LISTS T_ROOMS)
        if("sched" IN_LIST ZR_BELOW_${room} OR room STREQUAL "sched")
            set(T_THREADS ON)
        endif()
    endforeach()
    if(T_THREADS AND NOT T_ONE_THREAD)
        list(APPEND labels threads)
        zr_threads_test(test_${name})
    endif()
    set(server "")
    if(T_SERVER)
        set(server "${PROJECT_SOURCE_DIR}/tests/support/scripted_server.py" --tls)
    endif()
    add_test(NAME ${name} COMMAND ${server} $<TARGET_FILE:test_${name}>)
    set_tests_properties(${name} PROPERTIES
        LABELS "${labels}" TIMEOUT ${T_TIMEOUT} COST ${cost} SKIP_RETURN_CODE 77
        ENVIRONMENT "${ZR_TEST_ENV}")
endfunction()

# zr_fuzz_target(<name> SOURCES fuzz_x.c [ROOMS room...])
# Sources define LLVMFuzzerTestOneInput. The fuzz preset links libFuzzer. Builds with the
# address sanitizer or coverage link a driver that replays the seeds and the corpus, which
# the CTest fuzz_seeds packs, as the CTest fuzz_<name>. A replay without the sanitizer
# finds nothing that one with it misses: other builds have only objects, which are built
# if the compiler is not that of the sanitizer's build, for its warnings.
set(ZR_REPLAY OFF)
if(ZR_SANITIZE MATCHES "address" OR ZARR_COVERAGE)
    set(ZR_REPLAY ON)
endif()

function(zr_fuzz_target name)
    cmake_parse_arguments(PARSE_ARGV 1 F "" "" "SOURCES;ROOMS")
    if(NOT F_ROOMS)
        set(F_ROOMS ${ZR_ROOMS})
    endif()
    if(ZARR_FUZZ OR ZR_REPLAY)
        add_executable(fuzz_${name} ${F_SOURCES})
        set_target_properties(fuzz_${name} PROPERTIES
            RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
    else()
        add_library(fuzz_${name} OBJECT ${F_SOURCES})
        if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
            set_target_properties(fuzz_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
        endif()
    endif()
    zr_link_rooms(fuzz_${name} ${F_ROOMS})
    zr_fuzz_flags(fuzz_${name})
    if(ZARR_FUZZ)
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    elseif(ZR_REPLAY)
        if(NOT TARGET fuzz_driver)
            add_library(fuzz_driver OBJECT "${PROJECT_SOURCE_DIR}/tests/fuzz/standalone_driver.c")
            target_link_libraries(fuzz_driver PRIVATE zr_flags)
            zr_fuzz_flags(fuzz_driver)
        endif()
        target_link_libraries(fuzz_${name} PRIVATE fuzz_driver)
        add_test(NAME fuzz_${name}
                 COMMAND fuzz_${name} "${PROJECT_BINARY_DIR}/fuzz/seeds/${name}.seeds")
        set_tests_properties(fuzz_${name} PROPERTIES
            FIXTURES_REQUIRED fuzz_seeds
            LABELS fuzz TIMEOUT 120 SKIP_RETURN_CODE 77 ENVIRONMENT "${ZR_TEST_ENV}")
    endif()
endfunction()

function(zr_fuzz_flags target)
    zr_test_target(${target})
    target_compile_options(${target} PRIVATE
        "SHELL:-include ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz.h")
endfunction()
