#!/usr/bin/env bash
# Tunes every shipped suite for the GPU at hand and keeps what `autotune bench` measured.
# Usage: experiments/bench.sh [SECONDS_A_WORKLOAD] [SUITE...]; run again, it goes on where it was.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
kept=experiments/results/bench
python3 -m autotune bench "${@:2}" --target cuda --seconds "$seconds" --compile --out "${WORK:-autotune-runs/bench}"
mkdir -p "$kept"
cp "${WORK:-autotune-runs/bench}"/bench.* "$kept"
