# cmake -DPROGRAM=... -DFOLDER=... -DEXPECTED=... -P run.cmake: runs an example in an empty
# folder. It must end with 0 and write to standard output what the file EXPECTED has, or
# nothing if there is no such file.
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
execute_process(COMMAND "${PROGRAM}" example.zarr WORKING_DIRECTORY "${FOLDER}"
                RESULT_VARIABLE rc OUTPUT_VARIABLE output)
set(expected "")
if(EXISTS "${EXPECTED}")
    file(READ "${EXPECTED}" expected)
endif()
if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${PROGRAM}: ${rc}\n${output}")
endif()
if(NOT output STREQUAL expected)
    message(FATAL_ERROR "${PROGRAM} wrote\n${output}\ninstead of\n${expected}")
endif()
file(REMOVE_RECURSE "${FOLDER}")
