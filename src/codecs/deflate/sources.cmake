zr_codec(deflate SOURCES deflate_spec.c deflate_cpu.c LIBS zlib libdeflate)
