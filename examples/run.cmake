# cmake -DPROGRAM=... -DFOLDER=... -P run.cmake: runs an example in an empty folder.
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
execute_process(COMMAND "${PROGRAM}" example.zarr WORKING_DIRECTORY "${FOLDER}"
                RESULT_VARIABLE rc)
if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${PROGRAM}: ${rc}")
endif()
file(REMOVE_RECURSE "${FOLDER}")
