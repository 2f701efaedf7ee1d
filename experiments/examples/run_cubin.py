"""Launches a CUDA kernel that `autotune export --format artifact` wrote: FOLDER INPUTS.npz OUTPUTS.npz.

Needs numpy and the CUDA driver; neither Triton, torch nor kernel-autotune. bfloat16 travels as uint16.
"""

import ctypes as c
import hashlib
import json
import sys
from pathlib import Path

import numpy as np

MAX_DYNAMIC_SHARED, CLUSTER = 8, 4  # CUfunction_attribute, CUlaunchAttributeID


class Config(c.Structure):  # CUlaunchConfig
    _fields_ = [("grid", c.c_uint * 3), ("block", c.c_uint * 3), ("shared", c.c_uint), ("stream", c.c_void_p),
                ("attributes", c.c_void_p), ("count", c.c_uint)]  # fmt: skip


def check(code):
    assert code == 0, f"CUDA error {code}"


def aligned_map():
    memory = (c.c_uint64 * 24)()
    return memory, c.addressof(memory) + -c.addressof(memory) % 64


def tensor_map(cuda, parameter, address):
    """A CUtensorMap as cuTensorMapEncodeTiled makes it; extents are innermost first there."""
    memory, at = aligned_map()
    shape, box = parameter["shape"][::-1], parameter["box"][::-1]
    strides = np.cumprod(shape)[:-1] * parameter["itemsize"]
    rank = len(shape)
    check(cuda.cuTensorMapEncodeTiled(
        c.c_void_p(at), parameter["data_type"], rank, c.c_void_p(address), (c.c_uint64 * rank)(*shape),
        (c.c_uint64 * rank)(*map(int, strides)), (c.c_uint32 * rank)(*box), (c.c_uint32 * rank)(*[1] * rank),
        0, parameter["swizzle"], 2, 0))  # fmt: skip
    return memory, at


def main(folder, inputs, outputs):
    about = json.loads((folder / "launch.json").read_text())
    code = (folder / about["file"]).read_bytes()
    assert hashlib.sha256(code).hexdigest() == about["sha256"], "not the exported file"
    cuda = c.CDLL("libcuda.so.1")
    context, module, kernel = c.c_void_p(), c.c_void_p(), c.c_void_p()
    check(cuda.cuInit(0))
    check(cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0))
    check(cuda.cuCtxSetCurrent(context))
    check(cuda.cuModuleLoadData(c.byref(module), code))
    check(cuda.cuModuleGetFunction(c.byref(kernel), module, about["symbol"].encode()))
    check(cuda.cuFuncSetAttribute(kernel, MAX_DYNAMIC_SHARED, about["shared_bytes"]))
    given, arrays, addresses = np.load(inputs), {}, {}
    for spec in about["tensors"]:
        dtype = "uint16" if spec["dtype"] == "bfloat16" else spec["dtype"]
        array = arrays[spec["name"]] = np.zeros(spec["shape"], dtype)
        if not spec["output"]:
            array[...] = given[spec["name"]]
        address = c.c_uint64()
        check(cuda.cuMemAlloc_v2(c.byref(address), c.c_size_t(array.nbytes)))
        check(cuda.cuMemcpyHtoD_v2(address, c.c_void_p(array.ctypes.data), c.c_size_t(array.nbytes)))
        addresses[spec["name"]] = address.value
    kept, pointers = [], []
    for parameter in about["parameters"]:
        if parameter["kind"] == "tensor_map":
            memory, at = tensor_map(cuda, parameter, addresses[parameter["tensor"]])
            kept.append(memory)
        else:
            value = addresses.get(parameter.get("tensor"), parameter.get("value", 0))
            kept.append(c.c_int64(value))
            at = c.addressof(kept[-1])
        pointers.append(at)
    attribute = (c.c_uint32 * 18)(CLUSTER, 0, about["cluster"], 1, 1)
    config = Config((c.c_uint * 3)(*about["grid"]), (c.c_uint * 3)(*about["block"]), about["shared_bytes"], None,
                    c.addressof(attribute), int(about["cluster"] > 1))  # fmt: skip
    check(cuda.cuLaunchKernelEx(c.byref(config), kernel, (c.c_void_p * len(pointers))(*pointers), None))
    check(cuda.cuCtxSynchronize())
    for name, array in arrays.items():
        check(
            cuda.cuMemcpyDtoH_v2(c.c_void_p(array.ctypes.data), c.c_uint64(addresses[name]), c.c_size_t(array.nbytes))
        )
    np.savez(outputs, **{spec["name"]: arrays[spec["name"]] for spec in about["tensors"] if spec["output"]})


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
