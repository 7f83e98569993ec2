zr_codec(nolib SOURCES nolib_spec.c)
