zr_codec(zstd SOURCES zstd_spec.c zstd_cpu.c LIBS zstd)
