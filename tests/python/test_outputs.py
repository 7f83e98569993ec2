"""The memory of new arrays that reads give: kept when they are freed, up to a limit, and never shown unfilled."""
import gc
import os
import subprocess
import sys
import textwrap
import threading
import tracemalloc

import numpy as np
import pytest

import zarrc
from zarrc import _core

MIB = 1 << 20


@pytest.fixture
def large():
    """An array whose reads are 8 MiB, and its elements."""
    data = np.arange(8 * MIB // 4, dtype="int32").reshape(8, -1)
    return zarrc.open_group("memory:").create_array("a", data=data, chunks=(1, data.shape[1])), data


@pytest.fixture(autouse=True)
def nothing_kept(settings):
    gc.collect()
    _core.keep_outputs(0)
    zarrc.config.reset()


def kept_outputs():
    gc.collect()
    return _core.outputs()[1]


def address(array):
    return array.__array_interface__["data"][0]


def test_memory_of_a_freed_array_is_used_again(large):
    array, data = large
    first = array[...]
    place = address(first)
    assert kept_outputs() == 0
    del first
    assert kept_outputs() == 8 * MIB
    again = array[...]
    assert address(again) == place and np.array_equal(again, data) and kept_outputs() == 0
    other = array[...]  # while the first one lives
    assert address(other) != place and np.array_equal(other, data)


@pytest.mark.parametrize("read", [
    lambda a: a[...], lambda a: a.oindex[list(range(8)), :], lambda a: a.vindex[np.ones((8, a.shape[1]), bool)],
    lambda a: a.read_many([...])[0], lambda a: a.get_basic_selection(...), lambda a: np.asarray(a), lambda a: a[::-1, ::-1]])
def test_each_way_to_read_uses_it(large, read):
    array, _ = large
    before = _core.outputs()[0]
    found = read(array)
    assert _core.outputs()[0] == before + 8 * MIB
    del found
    assert kept_outputs() == 8 * MIB


def test_arrays_are_like_all_arrays_of_numpy(large):
    array, data = large
    found = array[...]
    assert found.flags.owndata and found.flags.writeable and found.flags.aligned and found.base is None
    assert sys.getsizeof(found) > found.nbytes
    found[0, 0] = 5
    view = found[1:]
    del found
    assert kept_outputs() == 0 and np.array_equal(view, data[1:])
    del view
    found = array[...]
    found.resize((16, data.shape[1]), refcheck=False)  # in place
    assert np.array_equal(found[:8], data) and not found[8:].any()
    found.resize((1, 10), refcheck=False)
    assert np.array_equal(found[0], data[0, :10])
    found.resize((8, data.shape[1]), refcheck=False)
    assert np.array_equal(found[0, :10], data[0, :10])
    del found
    assert _core.outputs()[0] == 0


def test_shrinking_a_little_keeps_the_block(large):
    array, data = large
    found = array[...]
    found.resize((6, data.shape[1]), refcheck=False)
    assert np.array_equal(found, data[:6])
    del found
    assert kept_outputs() == 8 * MIB


def test_other_arrays_of_numpy_keep_their_allocator(large):
    handler = pytest.importorskip("numpy._core.multiarray").get_handler_name
    array, _ = large
    before = handler()
    found = array[...]
    assert handler(found) == "zarrc" and handler() == before
    with pytest.raises(MemoryError):  # the allocator is NumPy's again after a failure, too
        array._fresh((1 << 46,), np.dtype("u1"), 5 * MIB)
    assert handler() == before and handler(np.empty(5 * MIB)) == before


def test_the_limit(large):
    array, data = large
    zarrc.config.set({"output_cache": "20M"})
    several = [array[...] for _ in range(4)]
    places = [address(one) for one in several]
    while several:
        del several[0]
    assert kept_outputs() == 16 * MIB  # the oldest went
    assert {address(one) for one in [array[...], array[...]]} == set(places[2:])
    with zarrc.config.set({"output_cache": 9 * MIB}):
        assert kept_outputs() == 8 * MIB
        with zarrc.config.set({"output_cache": 0}):
            assert kept_outputs() == 0
            found = array[...]
            assert _core.outputs() == (0, 0) and np.array_equal(found, data)
    with pytest.raises(ValueError):
        zarrc.config.set({"output_cache": -1})
    with pytest.raises(ValueError):
        zarrc.config.set({"output_cache": "much"})


def test_blocks_of_other_sizes(large):
    array, data = large
    found = array[...]
    place = address(found)
    del found
    found = array[:7]  # a little smaller: the same block
    assert address(found) == place and np.array_equal(found, data[:7])
    del found
    assert kept_outputs() == 8 * MIB
    part = array[:5]  # much smaller: another one
    assert kept_outputs() == 8 * MIB
    assert np.array_equal(part, data[:5])
    small = array[:1]
    assert np.array_equal(small, data[:1])


def test_fortran_order_and_dates(large):
    array, data = large
    columns = array.with_config({"order": "F"})[...]
    assert columns.flags.f_contiguous and np.array_equal(columns, data) and _core.outputs()[0] == 8 * MIB
    days = zarrc.open_group("memory:").create_array("d", data=np.arange(MIB).astype("M8[10s]"), chunks=MIB)
    found = days[...]
    assert found.dtype == "M8[10s]" and np.array_equal(found, np.arange(MIB).astype("M8[10s]"))


def test_a_failed_read_shows_nothing_and_loses_nothing(large):
    array, _ = large
    array[:]
    assert kept_outputs() == 8 * MIB
    array.store.set("a/c/3/0", b"damage")
    with pytest.raises(zarrc.ZarrcError):
        array[...]
    assert _core.outputs() == (0, 8 * MIB)


def test_threads(large):
    array, data = large
    problems = []

    def work():
        for i in range(20):
            n = 4 + i % 5
            found = array[:n]
            if not np.array_equal(found, data[:n]):
                problems.append(n)
            found[...] = -1

    threads = [threading.Thread(target=work) for _ in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert not problems
    assert _core.outputs()[0] == 0 and kept_outputs() <= 256 * MIB


def test_tracemalloc_sees_the_arrays(large):
    array, _ = large
    tracemalloc.start()
    try:
        found = array[...]
        assert tracemalloc.get_traced_memory()[0] >= found.nbytes
        del found
        assert tracemalloc.get_traced_memory()[0] < 4 * MIB
    finally:
        tracemalloc.stop()


def test_memory_is_bounded(large):
    array, _ = large

    def resident():
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    array[...], array[:6]
    before = resident()
    for i in range(200):
        array[:4 + i % 5]
    assert resident() - before < 48 * MIB and kept_outputs() < 48 * MIB


def run(code):
    return run_alone(textwrap.dedent(HEAD) + textwrap.dedent(code))


def run_alone(code):
    done = subprocess.run([sys.executable, "-X", "faulthandler", "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


HEAD = """
    import os, sys, resource, threading
    import numpy as np
    import zarrc
    from zarrc import _core
    data = np.arange(2 << 20, dtype="int32").reshape(8, -1)
    array = zarrc.open_group("memory:").create_array("a", data=data, chunks=(1, data.shape[1]))
    """


def test_the_child_of_a_fork_begins_with_none():
    run("""
    array[...]
    live = array[...]
    other = array[...]
    del other
    assert _core.outputs() == (8 << 20, 8 << 20)
    child = os.fork()
    if not child:
        assert _core.outputs() == (8 << 20, 0)
        assert np.array_equal(live, data) and np.array_equal(array[...], data)
        del live
        assert _core.outputs() == (0, 16 << 20)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert _core.outputs() == (8 << 20, 8 << 20) and np.array_equal(array[...], data)
    """)


def test_forks_beside_threads_that_free():
    run("""
    stop = False
    def work():
        while not stop:
            array[...]
    threads = [threading.Thread(target=work) for _ in range(2)]
    for one in threads: one.start()
    for _ in range(20):
        child = os.fork()
        if not child:
            _core.outputs(), np.array_equal(array[...], data)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    stop = True
    for one in threads: one.join()
    """)


def test_the_end_of_the_interpreter():
    """Arrays outlive what they were read from, and are freed last of all."""
    assert run("""
    class Late:
        def __del__(self, array=array[...], data=data, write=os.write):
            write(1, b"same" if array.tobytes() == data.tobytes() else b"other")
    late = Late()
    sys.array = array[...]
    array[...]
    """) == "same"


@pytest.mark.skipif("ZARRC_UNDER_ASAN" in os.environ, reason="the sanitizer takes address space as it likes")
def test_without_memory_what_is_kept_goes_first():
    """The address space is full of kept memory: a read of another size takes its place."""
    run("""
    import mmap
    zarrc.config.set({"output_cache": "1G", "max_threads": 1})
    array[:4]
    kept = [array[...] for _ in range(20)]
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (now + (3 << 20), resource.RLIM_INFINITY))
    _core.keep_outputs(1 << 30)
    del kept
    assert _core.outputs()[1] >= 160 << 20
    found = array._fresh((100 << 20,), np.dtype("u1"), 100 << 20)
    assert found.nbytes == 100 << 20 and _core.outputs()[1] == 0
    """)


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 1 has no StringDType")
def test_arrays_of_text_have_memory_that_is_kept():
    run("""
    n = 600_000  # 16 bytes each in the array, and where the library puts them
    texts = zarrc.create_array(None, shape=n, chunks=n, dtype=str, fill_value="missing")
    first = texts[:]
    used, idle = _core.outputs()
    assert 16 * n <= used < 32 * n and 16 * n <= idle < 32 * n
    assert (first == "missing").all()
    del first
    assert _core.outputs() == (0, used + idle)
    for value in ("", "x" * 15, "ß" * 200):
        texts[:] = np.array([value, "y"] * (n // 2), np.dtypes.StringDType())
        found = texts[:]
        assert (found[::2] == value).all() and (found[1::2] == "y").all()
        del found
    found = texts[: n - 1]
    found[5] = "another text that is longer than fifteen bytes"
    _core.keep_outputs(0)
    assert found[5].startswith("another") and found[4] == "ß" * 200 and texts[n - 1] == "y"
    del found
    assert _core.outputs() == (0, 0)
    """)


def test_a_numpy_with_another_abi_allocates_itself():
    run("""
    from zarrc import _native, _dtypes, _log, errors
    import ctypes, numpy
    api = _native._numpy_api()
    assert api is not None
    _core.bind(errors.from_library, _log.on_log, np.empty, np.ndarray, np.dtype, None, _dtypes.describe)
    found = array[...]
    assert np.array_equal(found, data) and _core.outputs() == (0, 0)
    texts = zarrc.create_array(None, shape=3, dtype=str)
    for kind in [object, *([np.dtypes.StringDType()] if hasattr(np.dtypes, "StringDType") else [])]:
        given = np.array(["ß", "", "x" * 99], kind)
        texts[...] = given
        assert texts[...].tolist() == given.tolist()
    """)


OWN = """
    import ctypes

    class Allocator(ctypes.Structure):
        _fields_ = [("ctx", ctypes.c_void_p)] + [(name, ctypes.c_void_p) for name in ("malloc", "calloc", "realloc", "free")]

    class Handler(ctypes.Structure):
        _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", Allocator)]

    libc, api = ctypes.CDLL(None), ctypes.pythonapi
    size, address = ctypes.c_size_t, ctypes.c_void_p
    for name, types in (("malloc", [size]), ("calloc", [size, size]), ("realloc", [address, size]), ("free", [address])):
        getattr(libc, name).argtypes, getattr(libc, name).restype = types, None if name == "free" else address
    calls = []

    def count_calls(name, kind, call):
        return kind(lambda ctx, *given: (calls.append((name, given[-1])), call(*given))[1])

    functions = [count_calls("malloc", ctypes.CFUNCTYPE(address, address, size), libc.malloc),
                 count_calls("calloc", ctypes.CFUNCTYPE(address, address, size, size), libc.calloc),
                 count_calls("realloc", ctypes.CFUNCTYPE(address, address, address, size), libc.realloc),
                 count_calls("free", ctypes.CFUNCTYPE(None, address, address, size), lambda p, n: libc.free(p))]
    own = Handler(b"of the program", 1, Allocator(None, *(ctypes.cast(one, address) for one in functions)))
    api.PyCapsule_New.argtypes, api.PyCapsule_New.restype = [address, ctypes.c_char_p, address], ctypes.py_object
    api.PyCapsule_GetPointer.argtypes, api.PyCapsule_GetPointer.restype = [ctypes.py_object, ctypes.c_char_p], address
    core = getattr(np, "_core", None) or np.core
    table = ctypes.cast(api.PyCapsule_GetPointer(core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(address))
    give = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[304])  # PyDataMem_SetHandler
    capsule = api.PyCapsule_New(ctypes.addressof(own), b"mem_handler", None)
    handler_name = core.multiarray.get_handler_name
    """


@pytest.mark.parametrize("is_first", [True, False], ids=["before the import", "after a read"])
def test_an_allocator_of_the_program_is_left_alone(is_first):
    """NEP 49: a program may give NumPy an allocator of its own."""
    open_it, take_it = textwrap.dedent(HEAD), "usual = give(capsule)\n"
    body = """
    before = array[...] if not FIRST else None
    TAKE
    before = None  # its memory is the package's, whatever the allocator of now is
    assert _core.outputs() == (0, 0 if FIRST else 8 << 20)
    calls.clear()
    found = array[...]
    assert np.array_equal(found, data) and handler_name(found) == handler_name() == "of the program", handler_name(found)
    assert ("malloc", 8 << 20) in calls and _core.outputs() == (0, 0 if FIRST else 8 << 20)
    del found
    assert ("free", 8 << 20) in calls
    found = array.oindex[list(range(8))]
    assert handler_name(found) == "of the program"
    give(usual)
    del found
    assert array[...].shape == data.shape and handler_name(array[...]) == "zarrc" and handler_name() == "default_allocator"
    os._exit(0)  # else arrays that live are freed by functions of Python that are gone
    """
    body = textwrap.dedent(body).replace("FIRST", str(is_first)).replace("TAKE\n", "" if is_first else take_it)
    own = textwrap.dedent(OWN)
    run_alone("import numpy as np\n" + own + take_it + open_it + body if is_first else open_it + own + body)
