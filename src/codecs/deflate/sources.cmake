zr_codec(deflate SOURCES deflate_spec.c deflate_cpu.c raw_stream.c LIBS zlib libdeflate)
