#!/usr/bin/env bash
# Tunes suites for the GPU at hand and keeps what `autotune bench` measured, a file a suite.
# Usage: experiments/bench.sh [SECONDS_A_WORKLOAD] [SUITE...]; run again, it goes on where it was.
# COMPILED names the suites in which torch.compile's max-autotune, which takes up to a minute a workload, takes part.
set -uo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
work=${WORK:-autotune-runs/bench}
kept=experiments/results/bench
shift || true
suites=("${@:-}")
[ -n "${suites[0]}" ] || suites=(matmul fused quantised attention decode rows reductions convolution)
mkdir -p "$kept"
for suite in "${suites[@]}"; do
  compiled=()
  case " ${COMPILED-fused rows reductions} " in *" $suite "*) compiled=(--compile) ;; esac
  python3 -m autotune bench "$suite" --target cuda --seconds "$seconds" "${compiled[@]}" --out "$work/$suite"
  ended=$?
  for kind in json md svg; do
    [ -f "$work/$suite/bench.$kind" ] && cp "$work/$suite/bench.$kind" "$kept/$suite.$kind"
  done
  [ $ended -eq 0 ] || exit $ended
done
