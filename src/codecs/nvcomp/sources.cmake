zr_codec(nvcomp SOURCES nvcomp_spec.c nvcomp_cpu.c LIBS lz4 zstd libdeflate)
