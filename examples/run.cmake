# cmake -DPROGRAM=... -DFOLDER=... -DEXPECTED=... [-DSERVER=...] -P run.cmake: runs an
# example in an empty folder. It must end with 0 and write to standard output what the
# file EXPECTED has, or nothing if there is no such file. With SERVER, the program of a
# web server that runs a command, its argument is the URL of an array.
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")
set(command "${PROGRAM}" example.zarr)
if(SERVER)
    file(WRITE "${FOLDER}/web.zarr/temp/.zarray"
         [[{"zarr_format": 2, "shape": [6], "chunks": [3], "dtype": "|u1", "order": "C",]]
         [[ "compressor": null, "filters": null, "fill_value": 7}]])
    file(WRITE "${FOLDER}/web.zarr/temp/1" "\t\n ") # 9, 10 and 32; chunk 0 is missing
    set(command "${SERVER}" --root "${FOLDER}" sh -c "'${PROGRAM}' $ZR_SERVER/web.zarr/temp")
endif()
execute_process(COMMAND ${command} WORKING_DIRECTORY "${FOLDER}"
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
