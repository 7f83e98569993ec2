zr_codec(shape SOURCES shape_spec.c)
