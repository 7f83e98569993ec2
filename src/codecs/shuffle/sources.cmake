zr_codec(shuffle SOURCES shuffle_spec.c shuffle_cpu.c shuffle.c shuffle_x86.c)
