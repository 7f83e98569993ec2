"""Seeds that a person writes: texts at the edges of what a parser takes. {target: [bytes]}"""
import json

# ---- JSON --------------------------------------------------------------------------------

JSON = [
    # values
    b"0", b"-0", b"-0.0", b"1e-7", b"2E5", b"1E+2", b"18446744073709551615", b"18446744073709551616",
    b"-9223372036854775808", b"-9223372036854775809", b"0." + b"1" * 40, b"1e400", b"1e-400",
    b"123456789012345678901234567890.5e-7", b"NaN", b"Infinity", b"-Infinity", b"true", b"false", b"null",
    b'""', b"[]", b"{}", b"[ ]", b"{ }", b" 1 ", b"\t4\r\n", b"[1 , 2]", b'{"a" : 1 , "b":2}', b" " * 130 + b"4",
    b"\r" * 130 + b"\n1", b"[" + b"\r" * 130 + b"1]", b'{"a":' + b"\n" * 140 + b"1}", b'{""' + b"\r" * 130 + b"\n:1}",
    # text
    b'"\\"\\\\\\/\\b\\f\\n\\r\\t"', b'"\\u0000"', b'"\\u00e9"', b'"\\uEe00"', b'"\\ud83d\\ude00"', b'"\\uD834\\uDD1E"',
    b'"\\ud83d"', b'"\\ud83d\\', b'"\\ud83dx"', b'"\\ud83d\\u0041"', b'"\\ud84d\\ue003"', b'"\\ude00"', b'"\\udbd3\\ude00"',
    b'"\\u"', b'"\\u\\', b'"\\u12', b'"\\u12g4"', b'"\\x"', b'"\\', b'"\\"', b'"\x7f"', b'"\x1f"', b'"\n"', b'"\0"',
    '"é漢\U0001f600"'.encode(), b'"long ' + b"text " * 30 + b'"', b'"' + b"\\ud83d\\ude00" * 8 + b'"',
    b'"' + b"\\u0e00" * 300 + b'"',
    # bytes that are no UTF-8
    b'"\x80"', b'"\xff"', b'"\xd9\xd9"', b'"\xc0\x80"', b'"\xe0\x80\x80"', b'"\xe0\xb3\xbf"', b'"\xed\x9b\xae"', b'"\xed\xa0\x80"',
    b'"\xef\xbb"', b'"\xef\xbb\xbf"', b'"\xf0\x80\x80\x80"', b'"\xf0\x9f\x98\x80"', b'"\xf4\x90\x80\x80"', b'"\xf5\x80\x80\x80"', b'"\xd9',
    # a byte order mark
    '\ufeff {"bom":1}'.encode(), b"\xef\xbb\xbf", b"\xef\xbb", b"\xff\xfe{",
    # what is wrong
    b"", b" ", b"-", b"+1", b"04", b"-01", b"1.", b".5", b"1.e5", b"3e", b"3e+", b"1e5x", b"0x10", b"1 2", b"nul", b"nulL",
    b"truee", b"Nan", b"NaNa", b"Inf", b"-Inf", b"-Infinit", b"[", b"[1", b"[1,", b"[1,]", b"[,1]", b"[1 2]", b"[1}", b"]", b"{", b'{"', b'{"a"',
    b'{"" ', b'{"a":', b'{"a":1', b'{"a":1,', b'{"a":1,}', b'{"a" 1}', b'{"a":1 "b"}', b"{1:2}", b"{a:1}", b'{"a":1]', b"}", b'"', b'"a', b"'a'", b"\\", b"A",
    b"\r" * 130 + b"A", b"/* */", b"//",
    # members with one name; many members, which are looked up by their hash
    b'{"a":1,"a":2}', b'{"a":1,"\\u0061":2}', b'{"a\\u0000":1,"a":2}', b'{"?\x7f|":2,"?\x7f|":4}',
    b"{" + b",".join(b'"k%d":%d' % (i, i) for i in range(40)) + b"}",
    b"{" + b",".join(b'"k%d":%d' % (i % 19, i) for i in range(40)) + b"}",
    b"{" + b",".join(b'"\\tk\\n%d":%d' % (i % 30, i) for i in range(40)) + b"}",
    b"{" + b",".join(b'"%s":1' % (b"long" * i) for i in range(20)) + b"}",
    # depth
    b"[" * 16 + b"]" * 16, b"[" * 65 + b"]" * 65, b"[" * 70, b'{"a":' * 40 + b"1" + b"}" * 40, b"[" * 1030 + b"]" * 1030,
    b"[" * 30 + b"0.0\r\r,0,-0,2E0\r\r\r" + b"]" * 30, b"[NaN,Infinity,-Infinity,0,-0.0,1e-7]",
    # a document
    b'{"a":[1,-2.5e3,true,false,null,"x\\u00e9\\ud83d\\ude00\\n"],"b":{},"c":[]}',
]

# ---- data types and elements -------------------------------------------------------------

STRUCTS = [
    '[["a","<i4"],["b",">f8",[2,3]],["n",[["x","|u1"],["y",">U2"]]]]',
    '[["a\\u00e4\\"","|S3",2]]',
    '[["n",[["m",[["c","<c8"]],[2]]],[2]]]',
    '[["a","<i4"],["a","<i4"]]',
    '{"name":"struct","configuration":{"fields":[{"name":"a","data_type":"int32"},{"name":"b","data_type":{"name":"struct",'
    '"configuration":{"fields":[["t","bool"],["d",{"name":"numpy.datetime64","configuration":{"unit":"s","scale_factor":1}}]]}}}]}}',
    '{"name":"structured","configuration":{"fields":[["x","float32"],["y","r16"]]}}',
]
TYPES = """bool int2 int8 uint64 float4_e2m1fn float6_e3m2fn float8_e4m3b11fnuz float8_e8m0fnu bfloat16 float16 float32
float64 complex64 complex_bfloat16 complex_float6_e2m3fn r24 raw_bytes[3] string variable_length_bytes optional[float32]
vlen-array[<i2] |b1 <i2 >i8 <f2 >f8 <c8 |S4 <U3 >U2 |V3 <M8[10us] >m8[s] |O""".split()
ELEMENTS = """0 -0 7 -8 9 0.0 -0.0 1.5 -129 1e-7 1e40 3e-20 448.0 0.0625 6.1005353927612305e-05 6.1005353927612304e-05 2E22222
18446744073709551616 true null "NaN" "Infinity" "-Infinity" "NaT" "0x7fc1" "0x7fc00001" "0x7ff8000000000001" "0x0f"
"0x7fcg" "" "a" "aé" "YWI=" "AQL/" "YW" "Y?==" [] [0,1] [1,2,255] [0,1,256] [0.1,2,2] [0,"x",1] [1.5,"Infinity"]
["NaN","0x01"] ["-Infinity",1e-40] [1,2,3,4] {} [[1,2,3],[4,5,6]]""".split()
NAMES = r"""< > | = i2 <i <i3 =i4 >f <f3 |f4 b1 |b4 |u9 m8 M8 M8[ M8[] M8[1] <M8[1s] <M8[10ys] <M8[99999999999s] <m8[xs] <M8[us] |S0 S6t
<U0 U3O <U99999999999 |V0 r r0 r7 r[] r77777777776777777774 raw_bytes[0] raw_bytes[a] vlen-array vlen-array[] vlen-array[R]
vlen-array[vlen-array] vlen-array[|O] optional[] optional[optional[int16]] optional[string] complex_string float6_e3m2fn[ |O4 []
[3] [["a"]] [["a","<i4",[]]] [["a","<i4",[-1]]] [["a","<i4","x"]] [["","<i8"]] [["a",[["b",[]]]]] [["a\u0000","<i4"]] {} {"name":1}
{"name":"struct"} {"name":"struct","configuration":{"fields":{}}} {"name":"struct","configuration":{"fields":[]}}
{"name":"fixed_length_utf32","configuration":{"length_bytes":8}} {"name":"fixed_length_utf32","configuration":{"length_bytes":7}}
{"name":"null_terminated_bytes","configuration":{"length_bytes":-1}}
{"name":"numpy.timedelta64","configuration":{"unit":"s","scale_factor":3}} ["int32"] "int32" int32? INT32""".split()
STRUCT_ELEMENTS = [
    '{"a":1,"b":[[1,2,3],[4,5,6]],"n":{"x":7,"y":"ab"}}', '{"a":1,"b":[[1,2,3]],"n":{"x":7,"y":"ab"}}',
    '{"a":1,"b":[[1,2,3],[4,5]],"n":{"x":7,"y":"ab"}}', '{"a":1,"b":[[1,2,3],[4,5,6]],"n":{"x":7}}', '{"a":1,"c":2}', '{"a":1,"a":1}',
    '{"a":-1,"b":{"t":true,"d":"NaT"}}', '{"a":-1,"b":{"t":1,"d":"NaT"}}', '{"a":-1,"b":3}', '"AACAPwEC"', '"AACAPwE="', '"AACA PwEC"',
    '{"a\\u00e4\\"":["YWI=","YWJj"]}', '{"a\\u00e4\\"":["YWI=","YWJjZA=="]}', '{"a\\u00e4\\"":"YWI="}', '0', '1', 'null', '{}', '[1,3]',
]


def dtype():
    for name in TYPES:
        for text in ELEMENTS:
            yield f"{name}\n{text}"
    for name in STRUCTS:
        for text in STRUCT_ELEMENTS:
            yield f"{name}\n{text}"
    for name in NAMES:
        yield f"{name}\n0"
        yield f"{name}\n\"AQ==\""
    yield from ("float16\n20e-05", "float32\n\"0x7fc0t301\"", "r24\n[0,", "U3\n\ufeff  \r\r\n ", "bool", "\n", "")


# ---- grids, keys and selections ----------------------------------------------------------

SELECTIONS = """... ...,... 0:10,::2,-1,... [3,5] [[1,2],0:3] ::-1 5:1:-2,: [3,5,...] [5] [] [[]] [[,]], [[1,2]] [[2,1,0]]
[[3,-3,-3,-1,-2,-2,-1,-2,-22]] ::0 :::: : , ,0 0, 0 -1 +0:+ 1:,: -1: :-1 :2:0,2 :1,:99999999999999999999:0,2 1.5 0:x x:0 x /
99999999999999999999 -9223372036854775808:9223372036854775807:9223372036854775807 -922337203685477580816:9223372036854775808
18446744073709551616 18446744073709551615 9223372036854775807 0:1:-9223372036854775808 5:5 7:3 3:7:-1 ::7 ::-7 -99:99 [0,1],[1,0]
[0,1],:,[1,0] 1,2,3,4 1,2,3,4,5 [0:1] [1,] [,1] [1 [[1] [1]] ]1[ (1) {1} a/b/../c a/.. .. . ./a /a a/ a//b c/0/0 zarr.json .zarray
!A [/../a] *x""".split() + ["", " ", "\t", "2\n", " : , : , 2 ", "[ 1 , 2 ]", " " * 65 + ",", ": :1", "1 :2", "\N{SUPERSCRIPT TWO}", "ª",
                            "[3,[1,2],0:3]", "a" * 300, "/" + "+" * 80]
GRIDS = [
    {"name": "regular", "configuration": {"chunk_shape": [3, 7]}},
    {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[1, [3, 3]], 2]}},
    {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [4, [1, [2, 3], 40], [[1, 1000000000], 7]]}},
    {"name": "zarrs.regular_bounded", "configuration": {"chunk_shape": [4, 3, 7]}},
]
# shape, chunk_grid, selection
CHUNKED = [
    ([10, 7], GRIDS[0], "1:9:2,::-1"),
    ([10, 7], GRIDS[1], "..."),
    ([5, 7, 9], GRIDS[2], "1,..."),
    ([5, 7, 9], GRIDS[3], "...,-1"),
    ([9], {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[3, 1], [2, 1], [4, 3]]]}},
     "8:0:-3"),
    ([4, 4], {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[1, 3], 4]}}, "[0,3,3],1"),
    ([5, 6], {"name": "zarrs.regular_bounded", "configuration": {"chunk_shape": [2, 4]}}, "-1,2:"),
    ([0, 3], {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[2], 1]}}, "..."),
    ([2**62], {"name": "rectilinear", "configuration": {"kind": "inline", "chunk_shapes": [[[2**20, 2**42]]]}}, "-3:"),
    ([], {"name": "regular", "configuration": {"chunk_shape": []}}, "..."),
]
KEYS = [{"name": "zarrs.default_suffix", "configuration": {"separator": ".", "suffix": ".tif"}},
        {"name": "suffix", "configuration": {"suffix": ".x", "base_encoding": {"name": "v2"}}}]


def compact(value):
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def grid():
    for shape, chunks, selection in CHUNKED:
        yield f"{compact(shape)}\n{compact(chunks)}\n{selection}"


def selection():
    for text in SELECTIONS:
        for shape in b"\x14\x16\x10\xc5":  # 4 dimensions of three sizes, and one
            yield bytes([shape]) + text.encode()


# ---- codecs that compute -----------------------------------------------------------------

# data type, codecs in front of bytes, chunk
COMPUTED = [
    ("float32", '{"name":"cast_value","configuration":{"data_type":"int16","rounding":"nearest-away",'
     '"out_of_range":"clamp","scalar_map":{"encode":[["NaN",-1]],"decode":[[-1,"NaN"]]}}}', bytes(range(16))),
    ("int64", '{"name":"cast_value","configuration":{"data_type":"float64"}}', bytes(64)),
    ("uint8", '{"name":"cast_value","configuration":{"data_type":"float8_e4m3fn","out_of_range":"clamp"}}',
     b"\x38\x40\x44\x48\x4a\x4c\x4e\x50"),
    ("int4", '{"name":"cast_value","configuration":{"data_type":"uint8","out_of_range":"wrap"}}', bytes(range(8))),
    ("int32", '{"name":"scale_offset","configuration":{"offset":-5,"scale":3}}', bytes(32)),
    ("float64", '{"name":"scale_offset","configuration":{"offset":0.5,"scale":"0x7ff8000000000001"}}', bytes(64)),
    ("bfloat16", '{"name":"scale_offset","configuration":{"scale":0.1}}', b"\x80\x3f" * 8),
    ("float16", '{"name":"bitround","configuration":{"keepbits":3}}', b"\xff\x7b" * 8),
    ("float64", '{"name":"scale_offset","configuration":{"offset":10,"scale":10}},'
     '{"name":"cast_value","configuration":{"data_type":"int16","out_of_range":"clamp"}}', bytes(range(16))),
    ("float32", '{"name":"numcodecs.fixedscaleoffset","configuration":{"offset":1,"scale":10.5,"astype":"<u2"}}',
     bytes(range(16))),
    ("float32", '{"name":"numcodecs.quantize","configuration":{"digits":2,"dtype":"<f4"}}', bytes(range(32))),
    ("int16", '{"name":"numcodecs.delta","configuration":{"dtype":"<i2"}},'
     '{"name":"numcodecs.astype","configuration":{"encode_dtype":"<i4","decode_dtype":"<i2"}}', bytes(range(32))),
]


def numbers():
    for name, codecs, chunk in COMPUTED:
        yield f"{name}\n{codecs}\n".encode() + chunk


# ---- consolidated metadata ---------------------------------------------------------------

GROUP = '{"zarr_format":3,"node_type":"group"}'
V3 = ('{"zarr_format":3,"node_type":"group","consolidated_metadata":'
      '{"kind":"inline","must_understand":false,"metadata":{%s}}}')
V2 = '{"zarr_consolidated_format":1,"metadata":{%s}}'
NODES = [
    V3 % f'"a":{GROUP},"a/b":{GROUP},"a-b":{GROUP},"x/y/z":{GROUP}',
    V3 % f'"../a":{GROUP}', V3 % f'"a//b":{GROUP}', V3 % f'"":{GROUP}',
    V3 % f'"a":{GROUP},"a":{GROUP}', V3 % '"a":[]', V3 % '"a":{"zarr_format":2}',
    V3 % f'"{"d/" * 300}e":{GROUP}',
    V2 % '".zgroup":{"zarr_format":2},"a/.zgroup":{"zarr_format":2},"a/.zattrs":{"x":1}',
    V2 % '"a/.zarray":{},"a/.zgroup":{"zarr_format":2}', V2 % '"b/.zattrs":{},"c":1',
    V2 % '"/.zgroup":{"zarr_format":2}', V2 % '"a/../.zgroup":{"zarr_format":2}',
]


# ---- lists in chunks ---------------------------------------------------------------------

# MessagePack of every first byte that has a length of its own, and text that is none
PACKED = [bytes.fromhex(text) for text in """c0 c1 c2 c3 00 7f ff e0 cc80 cd0100 ce00010000 cf0000000100000000 cfffffffffffffffff
d0ff d1ff00 d2ffff0000 d3ffffffff00000000 d38000000000000000 ca3fc00000 ca7fc00000 cb3ff8000000000000 cb7ff8000000000000
cb47f0000000000000 a0 a161 d90161 da000161 db0000000161 c40161 c5000161 c60000000161 c7010061 d40061 d5006161 d600 d7 d8
91a161 9101 dc000101 dd0000000101 81a17901 80 de0001a17901 df00000001a17901 a1ff a2c3a9 a2c328 a3eda080 db7fffffff61
ddffffffff dfffffffff""".split()]
# heads of fuzz_dec_listed for eight elements: elements, data type
LISTS = {0: ("true", "|b1"), 5: ("-3", "<i8"), 10: ("1.5", "<f4")}
LISTS_PACKED = {20: (b"\xc3", b"\xa3|b1"), 25: (b"\xfd", b"\xa3<i2"), 30: (b"\xca\x3f\xc0\0\0", b"\xa3<f8")}


def in_places(head, parts):
    """The list, and the list with each part of it replaced by each value, or cut there."""
    yield head + b"".join(parts)
    for i in range(len(parts)):
        yield head + b"".join(parts[:i])
        for value in PACKED:
            yield head + b"".join([*parts[:i], value, *parts[i + 1:]])


def msgpack2():
    yield from (b"\1" + value for value in PACKED)
    yield from in_places(b"\1\x95", [b"\xa1a", b"\xa1b", b"\xa1c", b"\xa2|O", b"\x91", b"\3"])
    yield b"\x09\x96" + b"\xa1a" * 4 + b"\xa2|O" + b"\x93\2\1\2"
    yield b"\3\xdc\x01\x2e" + b"\xa1a" * 300 + b"\xa2|O" + b"\x91\xcd\x01\x2c"


def list_seeds():
    for head, (element, name) in LISTS_PACKED.items():
        yield bytes([head]) + b"\x9a"
        yield from in_places(bytes([head]) + b"\x9a" + element * 6, [element, element, name, b"\x91", b"\x08"])
    for head, (element, name) in LISTS.items():
        for value in [element.encode(), *JSON]:
            start = bytes([head]) + b"[" + f"{element},".encode() * 7
            yield bytes([head]) + value
            yield start + value + b',"' + name.encode() + b'",[8]]'
            yield start + f"{element},".encode() + value + b",[8]]"
            yield start + f'{element},"{name}",'.encode() + value + b"]"


URLS = """http://h https://U:P@H.example:443/a%20b/../c?x=1&y=%2F s3://bucket/p/run.zarr/temp?versionId=1 plug:///p
http://[2001:DB8::1]:81/?a;b&c=#f zip:https://u:p@h/x.zip?t=s http://u:p/w@h/a@b http://h/%7e%2f%00 http://h:0/ http://[::1
http://h/a\\b http://h#f memory: plug:a?t=s""".split()


# The first byte chooses the range that was asked for.
HEADERS = ["2HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-5/10\r\nContent-Length: 4\r\nETag: W/\"x\"\r\n",
           "0HTTP/1.1 302 Found\nLocation: //g:444/a/../b?c#d\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\n",
           "0HTTP/1.1 100 Continue\r\nHTTP/1.0 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nContent-Encoding: identity\r\n",
           "0HTTP/1.1 416 x\r\ncontent-range: bytes */7\r\nretry-after: 120\r\n",
           "0HTTP/1.1 301 x\r\nLocation: ?x\r\nLocation: ../y\r\n", "0HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n",
           '<?xml version="1.0"?><D:multistatus xmlns:D="DAV:"><D:response><D:href>/x/</D:href><D:propstat><D:prop><D:resourcetype>'
           '<D:collection/></D:resourcetype></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>'
           '<D:response><D:href>http://h/x/a%20b</D:href><D:propstat><D:prop><D:getcontentlength>7</D:getcontentlength></D:prop>'
           '<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response></D:multistatus>',
           '<multistatus xmlns="DAV:"><response><href>/x/a</href><status>HTTP/1.1 403 no</status></response></multistatus>',
           '<!DOCTYPE a [<!ENTITY b "c">]><multistatus xmlns="DAV:"><response><href>/x/&b;&amp;&#x41;</href></response></multistatus>',
           '[{"name":"c","type":"directory","mtime":"x"},\n{"name":"zarr.json","type":"file","mtime":"x","size":7}]\n',
           '[{"name":"..","type":"file"},{"name":7}]', '[{"name":"a/b","type":"directory","size":-1},[],{}]']


def seeds():
    found = {"json": JSON, "dtype": dtype(), "grid": grid(), "selection": selection(), "numbers": numbers(), "url": URLS, "net": HEADERS,
             "consolidated": NODES, "nodes": NODES, "dec_msgpack2": msgpack2(), "dec_listed": list_seeds()}
    return {target: [text if isinstance(text, bytes) else text.encode() for text in texts]
            for target, texts in found.items()}
