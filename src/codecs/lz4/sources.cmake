zr_codec(lz4 SOURCES lz4_spec.c lz4_cpu.c LIBS lz4)
