zr_codec(base64 SOURCES base64_spec.c base64_cpu.c)
