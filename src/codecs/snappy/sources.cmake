zr_codec(snappy SOURCES snappy_spec.c NEEDS snappy snappy_cpu.c)
