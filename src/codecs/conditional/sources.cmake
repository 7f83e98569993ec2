zr_codec(conditional SOURCES conditional_spec.c conditional_cpu.c)
