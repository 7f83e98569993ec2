zr_codec(lzma SOURCES lzma_spec.c
         NEEDS lzma lzma_cpu.c)
