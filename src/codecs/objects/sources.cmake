zr_codec(objects SOURCES object_spec.c object_fill.c objects.c values.c json2_cpu.c msgpack2_put.c msgpack2_cpu.c categorize_cpu.c)
