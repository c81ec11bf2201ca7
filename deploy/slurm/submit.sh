#!/bin/bash
# Converts a model with Slurm: one job plans, an array of jobs writes the shards, and one job finishes.
# Set MODEL, OUT and PARTS, and run the script. lowtoggle must be in PATH, and all paths on storage that the nodes share.
MODEL=/shared/model
OUT=/shared/model-lowtoggle
PARTS=16

set -euo pipefail
cd "$(dirname "$0")"
plan=$OUT.plan.json # a plan that exists is used again. To set options of the plan: OPTIONS='--recipe balanced' ./submit.sh
logs=$OUT.logs
mkdir -p "$logs"

# Submits a job. Slurm cancels the job if a job that it waits for has failed.
submit() { sbatch --parsable --kill-on-invalid-dep=yes "$@"; }

after=()
if [[ ! -e $plan ]]; then
	# A search with tokens (OPTIONS='--tokens FILE --max-loss 0.1% --search-dir DIR') can be measured in parts. Submit the next command
	# first as an array, with -a 1-16 for sbatch and --part auto for lowtoggle. Then submit it with -d afterok:ARRAY for sbatch and
	# --merge for lowtoggle. See docs/scale.md.
	# shellcheck disable=SC2086 # options are words
	job=$(submit -J plan -o "$logs/plan-%j.log" step.sbatch lowtoggle plan "$MODEL" -o "$plan" ${OPTIONS-})
	after=(-d "afterok:$job")
	echo "job $job: plan"
fi
parts=$(submit -J part -o "$logs/part-%A-%a.log" -a "1-$PARTS" "${after[@]}" step.sbatch lowtoggle convert "$MODEL" "$OUT" --plan "$plan" --part auto)
echo "job $parts: parts 1 to $PARTS"
finish=$(submit -J finish -o "$logs/finish-%j.log" -d "afterok:$parts" step.sbatch lowtoggle convert "$MODEL" "$OUT" --plan "$plan" --finish)
echo "job $finish: finish"
echo "logs: $logs. If a job fails, correct the cause that its log names and run this script again. It keeps the parts that are written."
