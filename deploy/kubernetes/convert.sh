#!/bin/sh
# Converts a model with Kubernetes: runs the Jobs of plan.yaml, parts.yaml and finish.yaml, one after the other.
#   ./convert.sh                 all three Jobs
#   ./convert.sh parts finish    after a failure: keeps the plan and the parts that are written
# Set MODEL and OUT in values.yaml, and the number of parts in parts.yaml (twice). The cluster needs an image lowtoggle, which the
# Containerfile makes, and a volume claim models that many nodes can write (ReadWriteMany). For other names, change all files with sed.
set -eu
cd "$(dirname "$0")"
kubectl apply -f values.yaml
for step in ${*:-plan parts finish}; do
	job=lowtoggle-$step
	kubectl delete -f "$step.yaml" --ignore-not-found # a Job that has ended cannot be started again
	kubectl apply -f "$step.yaml"
	while :; do
		state=$(kubectl get job "$job" -o 'jsonpath={.status.conditions[?(@.status=="True")].type}') # sh -e ends here if kubectl fails
		case $state in
		*Complete*) break ;;
		*Failed*)
			kubectl get job "$job" -o 'jsonpath={.status.conditions[*].message}{"\nfailed indexes: "}{.status.failedIndexes}{"\n"}' >&2
			echo "$job failed: read its logs (kubectl logs -l job-name=$job --prefix), correct the cause, and run this step and the later steps again" >&2
			exit 1
			;;
		esac
		sleep 5
	done
done
