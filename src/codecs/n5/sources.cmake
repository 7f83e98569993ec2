zr_codec(n5 SOURCES n5_spec.c n5_cpu.c)
