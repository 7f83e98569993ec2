# Writes OUT, a C file in which the array NAME has the bytes of SOURCES and a zero byte.
set(text "")
foreach(source IN LISTS SOURCES)
    file(READ "${source}" bytes HEX)
    string(APPEND text "${bytes}")
endforeach()
string(LENGTH "${text}" digits)
math(EXPR bytes "${digits} / 2")
string(REGEX REPLACE "(................................)" "\\1\n" text "${text}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," text "${text}")
file(WRITE "${OUT}" "#include \"text.h\"\n\nconst size_t ${NAME}_bytes = ${bytes};\n"
     "_Alignas(16) const unsigned char ${NAME}[] = {\n${text}0};\n")
