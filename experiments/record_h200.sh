#!/usr/bin/env bash
# Records the suites of spaces on the CUDA device at hand, one command a space. What is finished is in OUT at once: the
# recordings in recordings.tar, their journals in journals.tar, a line a space in summary.jsonl, errors in errors.log.
#
#   experiments/record_h200.sh OUT [SUITE...]      suites: matmul softmax norms attention; all where none is named
#
# ARCH (sm_90), SAMPLE (500 schedules a space) and LIMIT (560 seconds; then no space is started, and what runs is
# stopped and written as far as it is) can be set. Two run at a time: one starts and builds while the other has the
# device.
set -uo pipefail
out=${1:?folder for the recordings}
shift
suites=("${@:-all}")
arch=${ARCH:-sm_90}
sample=${SAMPLE:-500}
limit=${LIMIT:-560}
mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

spaces() {
  case $1 in
    matmul)
      for cube in 1024 2048 4096 8192; do echo "matmul M=$cube,N=$cube,K=$cube float16"; done
      echo "matmul M=1024,N=14336,K=4096 bfloat16"
      echo "matmul M=2048,N=4096,K=14336 bfloat16"
      echo "matmul M=8192,N=6144,K=4096 bfloat16"
      echo "matmul M=2048,N=28672,K=8192 bfloat16"
      echo "matmul M=1024,N=8192,K=28672 bfloat16"
      echo "matmul M=16,N=6144,K=4096 bfloat16"
      echo "matmul M=16,N=14336,K=4096 bfloat16"
      echo "matmul M=16,N=8192,K=28672 bfloat16"
      ;;
    softmax)
      echo "softmax M=65536,N=1024 float16"
      echo "softmax M=16384,N=4096 float16"
      echo "softmax M=8192,N=16384 bfloat16"
      echo "softmax M=16384,N=8192 float16"
      ;;
    norms)
      for op in rms_norm layer_norm; do
        echo "$op M=65536,N=1024 float16"
        echo "$op M=16384,N=4096 float16"
        echo "$op M=8192,N=8192 bfloat16"
        echo "$op M=4096,N=16384 bfloat16"
      done
      ;;
    attention)
      echo "attention B=4,H=32,G=32,S=4096,D=128,causal=1 float16"
      echo "attention B=4,H=32,G=32,S=4096,D=128,causal=0 float16"
      echo "attention B=8,H=16,G=16,S=1024,D=64,causal=0 float16"
      echo "attention B=1,H=32,G=8,S=8192,D=128,causal=1 bfloat16"
      ;;
    all) for suite in matmul softmax norms attention; do spaces "$suite"; done ;;
    *) echo "no suite $1" >&2 ;;
  esac
}

record() {
  local op=$1 shape=$2 dtype=$3 folder name
  if ((SECONDS > limit)); then
    echo "not started: $op $shape $dtype" >>"$out/errors.log"
    return
  fi
  folder=$work/$op-$shape-$dtype
  if ! timeout -s TERM "$((limit - SECONDS + 1))" python3 -m autotune record --op "$op" --target cuda "-arch=$arch" \
    --shape "$shape" --dtype "$dtype" --sketch triton --sample "$sample" --out "$folder" --json --quiet \
    >"$folder.json" 2>"$folder.err"; then
    { echo "$op $shape $dtype:"; tail -n 3 "$folder.err"; } >>"$out/errors.log"
  fi
  for recording in "$folder"/*.recording.gz; do
    [[ -e $recording ]] || continue
    name=$(basename "$recording" .recording.gz)
    gzip -9c "$folder/journal.jsonl" >"$folder/$name.journal.jsonl.gz"
    (
      flock 9
      tar -rf "$out/recordings.tar" -C "$folder" "$name.recording.gz"
      tar -rf "$out/journals.tar" -C "$folder" "$name.journal.jsonl.gz"
      tr -d '\n' <"$folder.json" >>"$out/summary.jsonl"
      echo >>"$out/summary.jsonl"
    ) 9>"$work/lock"
  done
}

while read -r op shape dtype; do
  if (($(jobs -rp | wc -l) >= 2)); then wait -n; fi
  record "$op" "$shape" "$dtype" &
done < <(for suite in "${suites[@]}"; do spaces "$suite"; done)
wait
cat "$out/errors.log" 2>/dev/null
tar -tf "$out/recordings.tar"
