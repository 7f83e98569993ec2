zr_codec(filters SOURCES filter_spec.c filter_cpu.c delta.c)
