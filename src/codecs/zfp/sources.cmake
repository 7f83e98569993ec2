zr_codec(zfp SOURCES zfp_spec.c
         NEEDS zfp zfp_cpu.c zfp_promote.c)
