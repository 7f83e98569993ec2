zr_codec(blosc SOURCES blosc_spec.c blosc_cpu.c LIBS blosc)
