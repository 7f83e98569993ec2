zr_codec(bz2 SOURCES bz2_spec.c
         NEEDS bz2 bz2_cpu.c)
