"""Small files of other tuners, as those write them."""

import json


def _triton(block_m, block_n, warps, times):
    kwargs = {"BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": 32, "GROUP_M": 8}
    rest = {"num_ctas": 1, "num_stages": 3, "maxnreg": None, "pre_hook": None, "ir_override": None}
    return [{"kwargs": kwargs, "num_warps": warps, **rest}, times]


def _moe(block_m, block_n, warps):
    tiles = {"BLOCK_SIZE_M": block_m, "BLOCK_SIZE_N": block_n, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 8}
    return {**tiles, "num_warps": warps, "num_stages": 4}


SAMPLES = {
    "triton": {
        "key": [1024, 1024, 1024, "torch.float16", "torch.float16"],
        "configs_timings": [
            _triton(64, 128, 8, [1.0, 0.9, 1.1]),
            _triton(128, 128, 8, [0.5, 0.45, 0.55]),
            _triton(256, 256, 4, [float("inf")] * 3),
        ],
    },
    "fused_moe": {"triton_version": "3.9.0", "1": _moe(16, 64, 4), "64": _moe(64, 128, 4), "4096": _moe(128, 256, 8)},
    "kernel_tuner": {
        "device_name": "NVIDIA H200",
        "kernel_name": "sgemm",
        "problem_size": [1024, 1024],
        "tune_params_keys": ["BM", "BN", "BK"],
        "tune_params": {"BM": [64, 128], "BN": [64, 128], "BK": [32, 64]},
        "objective": "time",
        "cache": {
            "64,64,32": {"BM": 64, "BN": 64, "BK": 32, "time": 0.4, "times": [0.4, 0.41, 0.39]},
            "128,128,64": {"BM": 128, "BN": 128, "BK": 64, "time": 0.3, "times": [0.3, 0.31, 0.29]},
            "128,64,64": {"BM": 128, "BN": 64, "BK": 64, "time": "CompilationFailedConfig"},
        },
    },
    "t4": {
        "schema_version": "1.0.0",
        "metadata": {"timeunit": "milliseconds"},
        "results": [
            {
                "configuration": {"BM": bm, "BN": 64, "BK": bk},
                "times": {"runtimes": [time], "compilation_time": 900.0},
                "invalidity": "correct" if time else "compile",
                "measurements": [{"name": "time", "value": time, "unit": "ms"}] if time else [],
            }
            for bm, bk, time in ((64, 32, 0.4), (128, 64, 0.3), (64, 64, 0.0))
        ],
    },
}
FILES = {
    "triton": "mm.autotune.json",
    "fused_moe": "E=8,N=7168,device_name=NVIDIA_H200,dtype=fp8_w8a8.json",
    "kernel_tuner": "sgemm.json",
    "t4": "sgemm__h200.T4.json",
}


def write_sample(name, folder):
    """The sample as a file in `folder`; gives its path."""
    path = folder / FILES[name]
    path.write_text(json.dumps(SAMPLES[name]))
    return path
