#!/usr/bin/env bash
# The marks of the README's table, one command each, on the CUDA device at hand; results as JSON in the folder given.
#
#   experiments/on_gpu.sh OUT [-arch=sm_90]
set -uo pipefail
out=${1:?folder for the results}
arch=${2:--arch=sm_90}
mkdir -p "$out"
tune() {
  local name=$1
  shift
  timeout 180 python3 -m autotune run --target cuda "$arch" --out "$(mktemp -d)/run" --json "$@" >"$out/$name.json"
}
tune matmul_4096_fp16 --op matmul --shape M=4096,N=4096,K=4096 --dtype float16
tune softmax_16384x4096_fp16 --op softmax --shape M=16384,N=4096 --dtype float16
tune attention_b4h32s4096d128_causal_fp16 --op attention --shape B=4,H=32,S=4096,D=128,causal=1 --dtype float16
python3 experiments/table.py "$out"/*.json
