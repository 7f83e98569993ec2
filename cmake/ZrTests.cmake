# zr_unit_test(<room>_<name> SOURCES test_x.c [ROOMS room...] [LIBS name...])
# A cmocka program, linked with the objects of ROOMS (default: the <room> in its
# name) and of all rooms below these, so that a broken upper room blocks no lower
# test. Target unit_<room> builds all programs of a room; ctest -R '^<room>_'
# runs them. Exit code 77: skipped, with a reason on standard output.
set(ZR_TEST_ENV
    "ZR_SOURCE_DIR=${PROJECT_SOURCE_DIR}"
    "ZR_BINARY_DIR=${PROJECT_BINARY_DIR}"
    "ASAN_OPTIONS=detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1:allocator_may_return_null=1"
    "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1"
    "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")

# Seconds; a test may ask for more. It beats what ctest --timeout says.
set(ZR_TEST_TIMEOUT 60)
if(CMAKE_CROSSCOMPILING)
    set(ZR_TEST_TIMEOUT 1200) # qemu costs a factor of 30
elseif(ZR_SANITIZE)
    set(ZR_TEST_TIMEOUT 180) # the sanitizers cost a factor of 2 to 15
endif()

function(zr_unit_test name)
    cmake_parse_arguments(PARSE_ARGV 1 T "" "TIMEOUT" "SOURCES;ROOMS;LIBS")
    string(REGEX MATCH "^[a-z]+" room "${name}")
    if(NOT room IN_LIST ZR_ROOMS)
        message(FATAL_ERROR "zr_unit_test(${name}): \"${room}\" is no room")
    endif()
    if(NOT T_ROOMS)
        set(T_ROOMS ${room})
    endif()
    if(NOT T_TIMEOUT OR T_TIMEOUT LESS ZR_TEST_TIMEOUT)
        set(T_TIMEOUT ${ZR_TEST_TIMEOUT})
    endif()
    zr_dep_targets(libs cmocka ${T_LIBS})
    add_executable(test_${name} ${T_SOURCES})
    zr_link_rooms(test_${name} ${T_ROOMS})
    target_link_libraries(test_${name} PRIVATE ${libs})
    target_include_directories(test_${name} PRIVATE
        "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
    set_target_properties(test_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
    if(NOT TARGET unit_${room})
        add_custom_target(unit_${room})
    endif()
    add_dependencies(unit_${room} test_${name})
    add_test(NAME ${name} COMMAND test_${name})
    set_tests_properties(${name} PROPERTIES
        LABELS unit TIMEOUT ${T_TIMEOUT} SKIP_RETURN_CODE 77 ENVIRONMENT "${ZR_TEST_ENV}")
endfunction()

# zr_fuzz_target(<name> SOURCES fuzz_x.c [ROOMS room...])
# Sources define LLVMFuzzerTestOneInput. The fuzz preset links libFuzzer; every
# other build links a driver that replays tests/fuzz/corpus/<name> and the seeds
# that the CTest fuzz_seeds makes, as the CTest fuzz_<name>.
function(zr_fuzz_target name)
    cmake_parse_arguments(PARSE_ARGV 1 F "" "" "SOURCES;ROOMS")
    if(NOT F_ROOMS)
        set(F_ROOMS ${ZR_ROOMS})
    endif()
    set(corpus "${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name}")
    add_executable(fuzz_${name} ${F_SOURCES})
    zr_link_rooms(fuzz_${name} ${F_ROOMS})
    target_include_directories(fuzz_${name} PRIVATE
        "${PROJECT_SOURCE_DIR}/include" "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/tests")
    target_compile_options(fuzz_${name} PRIVATE "SHELL:-include ${PROJECT_SOURCE_DIR}/tests/fuzz/fuzz.h")
    set_target_properties(fuzz_${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/fuzz")
    if(ZARR_FUZZ)
        target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
        return()
    endif()
    if(NOT TARGET zr_fuzz_driver)
        add_library(zr_fuzz_driver OBJECT "${PROJECT_SOURCE_DIR}/tests/fuzz/standalone_driver.c")
        target_link_libraries(zr_fuzz_driver PRIVATE zr_flags)
    endif()
    target_sources(fuzz_${name} PRIVATE $<TARGET_OBJECTS:zr_fuzz_driver>)
    add_test(NAME fuzz_${name} COMMAND fuzz_${name}
             "${corpus}" "${PROJECT_BINARY_DIR}/fuzz/seeds/${name}.seeds")
    set_tests_properties(fuzz_${name} PROPERTIES
        FIXTURES_REQUIRED fuzz_seeds
        LABELS fuzz TIMEOUT 120 SKIP_RETURN_CODE 77 ENVIRONMENT "${ZR_TEST_ENV}")
endfunction()
