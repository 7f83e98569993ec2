zr_codec(checksum SOURCES checksum_spec.c checksum_cpu.c sums.c crc32c.c crc32c_x86.c LIBS zlib)
