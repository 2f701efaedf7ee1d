"""Runs a CPU kernel that `autotune export --format artifact` wrote, with ctypes: FOLDER INPUTS.npz OUTPUTS.npz.

Needs numpy and libtvm_ffi (`pip install apache-tvm-ffi`), neither TVM nor kernel-autotune.
"""

import ctypes as c
import hashlib
import importlib.util
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

THREADS = 2
LAMBDA = c.CFUNCTYPE(c.c_int, c.c_int, c.c_void_p, c.c_void_p)


class DLTensor(c.Structure):  # data, device, ndim, dtype, shape, strides, byte_offset of DLPack
    _fields_ = [("data", c.c_void_p), ("device", c.c_int32 * 2), ("ndim", c.c_int32), ("code", c.c_uint8),
                ("bits", c.c_uint8), ("lanes", c.c_uint16), ("shape", c.c_void_p), ("strides", c.c_void_p),
                ("byte_offset", c.c_uint64)]  # fmt: skip


class Any(c.Structure):  # TVMFFIAny: 7 is a pointer to a DLTensor
    _fields_ = [("type_index", c.c_int32), ("zero", c.c_uint32), ("value", c.c_void_p)]


@c.CFUNCTYPE(c.c_int, LAMBDA, c.c_void_p, c.c_int)
def parallel_launch(body, data, _tasks):
    group = (c.c_int64 * 2)(0, THREADS)  # no barrier, number of tasks
    with ThreadPoolExecutor(THREADS) as pool:
        return max(pool.map(lambda task: body(task, c.addressof(group), data), range(THREADS)))


libc = c.CDLL(None)
libc.aligned_alloc.restype = c.c_void_p
libc.free.restype = None


@c.CFUNCTYPE(c.c_void_p, c.c_int, c.c_int, c.c_uint64, c.c_int, c.c_int)
def alloc(_kind, _device, size, _code, _bits):
    return libc.aligned_alloc(c.c_size_t(64), c.c_size_t(-(-size // 64) * 64))


@c.CFUNCTYPE(c.c_int, c.c_int, c.c_int, c.c_void_p)
def free(_kind, _device, pointer):
    libc.free(c.c_void_p(pointer))
    return 0


def aligned(shape, dtype):
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + 64, np.int8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


def main(folder, inputs, outputs):
    about = json.loads((folder / "launch.json").read_text())
    library = folder / about["file"]
    assert hashlib.sha256(library.read_bytes()).hexdigest() == about["sha256"], "not the exported file"
    ffi = Path(importlib.util.find_spec("tvm_ffi").origin).parent / "lib" / "libtvm_ffi.so"
    c.CDLL(str(ffi), mode=c.RTLD_GLOBAL)
    kernel = c.CDLL(str(library))
    services = {"ParallelLaunch": parallel_launch, "AllocWorkspace": alloc, "FreeWorkspace": free}
    for name, function in services.items():
        try:
            c.c_void_p.in_dll(kernel, f"__TVMBackend{name}").value = c.cast(function, c.c_void_p).value
        except ValueError:
            continue  # this kernel does not call it
    given, arrays, tensors = np.load(inputs), {}, []
    for spec in about["tensors"]:
        array = arrays[spec["name"]] = aligned(spec["shape"], spec["dtype"])
        if not spec["output"]:
            array[...] = given[spec["name"]]
        shape = (c.c_int64 * array.ndim)(*array.shape)
        strides = (c.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))
        tensor = DLTensor(array.ctypes.data, (c.c_int32 * 2)(1, 0), array.ndim, 2, 8 * array.itemsize, 1,
                          c.addressof(shape), c.addressof(strides), 0)  # fmt: skip
        tensors.append((tensor, shape, strides))
    arguments = (Any * len(tensors))(*(Any(7, 0, c.addressof(t[0])) for t in tensors))
    status = getattr(kernel, about["symbol"])(None, arguments, len(tensors), c.byref(Any()))
    assert status == 0, "the kernel refuses its arguments"
    np.savez(outputs, **{spec["name"]: arrays[spec["name"]] for spec in about["tensors"] if spec["output"]})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
