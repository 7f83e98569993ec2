zr_codec(optional SOURCES optional_spec.c optional_cpu.c)
