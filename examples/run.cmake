# cmake -DPROGRAM=... -DFOLDER=... -DNAME=... [-DSERVER=...] -P run.cmake: runs an example
# in an empty folder. It must end with 0 and write to standard output what outputs.txt has
# below the line "== NAME", or nothing if there is no such line. With SERVER, the program
# of a web server that runs a command, its argument is the URL of an array.
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
file(READ "${CMAKE_CURRENT_LIST_DIR}/outputs.txt" outputs)
string(FIND "${outputs}" "\n== ${NAME}\n" at)
if(at GREATER -1)
    string(SUBSTRING "${outputs}" ${at} -1 outputs)
    string(LENGTH "\n== ${NAME}\n" heading)
    string(SUBSTRING "${outputs}" ${heading} -1 expected)
    string(FIND "\n${expected}" "\n== " end)
    string(SUBSTRING "${expected}" 0 ${end} expected)
endif()
if(NOT rc EQUAL 0)
    message(FATAL_ERROR "${PROGRAM}: ${rc}\n${output}")
endif()
if(NOT output STREQUAL expected)
    message(FATAL_ERROR "${PROGRAM} wrote\n${output}\ninstead of\n${expected}")
endif()
file(REMOVE_RECURSE "${FOLDER}")
