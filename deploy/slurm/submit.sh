#!/bin/bash
# Converts a model with Slurm: one job plans, an array of jobs writes the shards, and one job finishes.
# Set these three values and run the script. lowtoggle must be in PATH, and all paths on storage that the nodes share.
MODEL=/shared/model
OUT=/shared/model-lowtoggle
PARTS=16

set -euo pipefail
cd "$(dirname "$0")"
plan=$OUT.plan.json # kept if it exists; options of another plan, such as --recipe balanced: OPTIONS='...' ./submit.sh
logs=$OUT.logs
mkdir -p "$logs"

# Slurm cancels a job if one that it waits for has failed.
submit() { sbatch --parsable --kill-on-invalid-dep=yes "$@"; }

after=()
if [[ ! -e $plan ]]; then
	# A search with tokens (OPTIONS='--tokens FILE --max-loss 0.1% --search-dir DIR') can be measured in parts: submit this command as an
	# array (-a 1-16) with --part auto behind it, then this job with -d afterok:ARRAY and --merge behind it. See docs/scale.md.
	# shellcheck disable=SC2086 # options are words
	job=$(submit -J plan -o "$logs/plan-%j.log" step.sbatch lowtoggle plan "$MODEL" -o "$plan" ${OPTIONS-})
	after=(-d "afterok:$job")
	echo "job $job: plan"
fi
parts=$(submit -J part -o "$logs/part-%A-%a.log" -a "1-$PARTS" "${after[@]}" step.sbatch lowtoggle convert "$MODEL" "$OUT" --plan "$plan" --part auto)
echo "job $parts: parts 1 to $PARTS"
finish=$(submit -J finish -o "$logs/finish-%j.log" -d "afterok:$parts" step.sbatch lowtoggle convert "$MODEL" "$OUT" --plan "$plan" --finish)
echo "job $finish: finish"
echo "logs: $logs. If a job fails, mend what its log says and run this script again: parts that are written stay."
