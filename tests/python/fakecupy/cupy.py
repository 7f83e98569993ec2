"""What the tests need of CuPy, over the driver without a GPU of tests/ports/cuda, whose memory the CPU cannot touch. zarrc
itself moves the elements, so there are no streams and no kernels here; views have strides, as CuPy's."""
import numpy as np

import zarrc

float32, int32, uint8 = np.float32, np.int32, np.uint8


def _host(shape, dtype):
    """A place in host memory from which elements can go to the device, and back."""
    return zarrc.open_array(None, mode="w", shape=shape, dtype=dtype, compressors=None, device="cuda:0", like="numpy")


class ndarray:
    def __init__(self, tensor, view=None):
        self._tensor = tensor
        self._shadow = np.empty(tensor.shape, tensor.dtype) if view is None else view[0]  # says where elements of views are
        self._view = self._shadow if view is None else view[1]
        self.shape, self.dtype, self.ndim, self.size, self.nbytes = (
            self._view.shape, self._view.dtype, self._view.ndim, self._view.size, self._view.nbytes)

    @property
    def device(self):
        return cuda.Device(0)

    @property
    def __cuda_array_interface__(self):
        told = self._tensor.__cuda_array_interface__
        offset = self._view.ctypes.data - self._shadow.ctypes.data if self.size else 0
        return {**told, "shape": self.shape, "data": (told["data"][0] + offset, False), "strides": self._view.strides, "stream": 1}

    def __dlpack_device__(self):
        return 2, 0

    def __array__(self, *unused, **options):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def __array_function__(self, function, types, given, named):
        if function is np.asanyarray:  # like=
            return asarray(*given, **named)
        raise TypeError(function.__name__)

    def __len__(self):
        return len(self._view)

    def __getitem__(self, key):
        return ndarray(self._tensor, (self._shadow, self._view[key if isinstance(key, tuple) else (key,)]))

    def __setitem__(self, key, value):
        """By way of the host, and by the whole memory, as it is no view that is changed."""
        self.get()
        self._view[key] = asnumpy(value)
        z = _host(self._tensor.shape, self.dtype)
        z[...] = self._shadow
        z.read(out=ndarray(self._tensor))

    def __eq__(self, other):
        return asarray(self.get() == asnumpy(other))

    def all(self):
        return asarray(self.get().all())

    def __bool__(self):
        return bool(self.get())

    def astype(self, dtype):
        if np.dtype(dtype).kind not in "biufc":
            raise TypeError(f"CuPy has no {dtype}")
        return asarray(self.get().astype(dtype))

    def copy(self):
        return asarray(self.get())

    def reshape(self, shape):
        return asarray(self.get().reshape(shape))

    def ravel(self):
        return asarray(self.get().ravel())

    @property
    def T(self):
        return asarray(np.ascontiguousarray(self.get().T))

    def get(self):
        if not self.size:
            return self._view.copy()
        z = _host(self._tensor.shape, self.dtype)
        z[...] = self._tensor
        self._shadow[...] = z[...]
        return self._view.copy()


class cuda:
    class Device:
        entered = 0  # how often one was made the current one

        def __init__(self, number):
            assert number == 0

        def __enter__(self):
            cuda.Device.entered += 1
            return self

        def __exit__(self, *unused):
            pass

    class get_current_stream:
        def synchronize(self):
            pass

    class alloc:
        """What CuPy's pool gives."""

        def __init__(self, nbytes):
            self._held = zarrc.open_array(None, mode="w", shape=nbytes, dtype="u1", device="cuda:0", like="numpy")._device((nbytes,), "cuda:0", None)
            self.ptr = self._held.pointer


def from_dlpack(tensor):
    return ndarray(tensor)


def asarray(given, dtype=None):
    if isinstance(given, ndarray):
        return given
    host = np.asarray(given, dtype)
    z = _host(host.shape, host.dtype)
    z[...] = host
    return ndarray(z.read(device="cuda:0"))


array = asanyarray = asarray


def asnumpy(given):
    return given.get() if isinstance(given, ndarray) else np.asarray(given)


def frombuffer(given, dtype):
    return asarray(np.frombuffer(given, dtype))


def empty(shape, dtype=float, order="C"):
    assert order == "C"
    return asarray(np.zeros(shape, dtype))


def arange(*given, dtype=None):
    return asarray(np.arange(*given, dtype=dtype))


def ones(shape, dtype=float):
    return asarray(np.ones(shape, dtype))
