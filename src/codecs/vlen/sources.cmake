zr_codec(vlen SOURCES vlen_spec.c vlen_cpu.c vlen_array_spec.c vlen_index_spec.c vlen_index_cpu.c)
