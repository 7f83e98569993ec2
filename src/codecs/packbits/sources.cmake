zr_codec(packbits SOURCES packbits_spec.c packbits_cpu.c)
