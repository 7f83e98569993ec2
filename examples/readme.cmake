# cmake -DREADME=... -DSOURCE=... -P readme.cmake: README.md shows the whole sample,
# less its first line, as it is compiled.
file(READ "${README}" readme)
file(READ "${SOURCE}" source)
string(FIND "${source}" "\n" at)
math(EXPR at "${at} + 1")
string(SUBSTRING "${source}" ${at} -1 source)
string(FIND "${readme}" "```c\n${source}```\n" at)
if(at EQUAL -1)
    message(FATAL_ERROR "README.md does not show examples/readme.c as it is")
endif()
