#!/bin/bash
# RUN=runs/matmul sbatch experiments/cluster/slurm.sh --op matmul --target cuda
#
# One run over the GPUs of all nodes of the job; Ray starts on each node and ends with the job. A job that is cut off by
# its time limit is told so two minutes before, saves, and goes on when it is submitted again.
#SBATCH --job-name=autotune
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --exclusive
#SBATCH --time=08:00:00
#SBATCH --signal=B:TERM@120
set -euo pipefail

port=6379
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
address=$(srun --nodes=1 --ntasks=1 --nodelist="$head" hostname --ip-address | awk '{print $1}')
# Only who has the token may use the cluster.
RAY_AUTH_TOKEN=$(openssl rand -hex 32)
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN

srun --nodes=1 --ntasks=1 --nodelist="$head" \
  ray start --head --node-ip-address="$address" --port=$port --include-dashboard=false --block &
until ray health-check --address="$address:$port" 2>/dev/null; do sleep 1; done
if [ "$SLURM_JOB_NUM_NODES" -gt 1 ]; then
  srun --nodes=$((SLURM_JOB_NUM_NODES - 1)) --ntasks=$((SLURM_JOB_NUM_NODES - 1)) --exclude="$head" \
    ray start --address="$address:$port" --block &
fi

resume=()
if [ -e "$RUN/journal.jsonl" ]; then resume=(--resume); fi
autotune run --executor ray --address "$address:$port" --out "$RUN" "${resume[@]}" "$@" &
run=$!
trap 'kill -TERM $run' TERM
# A trap ends the first wait; the second has the run's own end.
wait $run || wait $run
