zr_codec(cast SOURCES cast_spec.c scale_spec.c cast_cpu.c cast.c round_spec.c round_cpu.c)
