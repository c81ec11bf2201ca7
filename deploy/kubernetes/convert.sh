#!/bin/sh
# Converts a model with Kubernetes: the Job of plan.yaml, then that of parts.yaml, then that of finish.yaml.
#   ./convert.sh                 all three
#   ./convert.sh parts finish    after a failure: the plan and the parts that are written stay
# Set MODEL and OUT in values.yaml, and the number of parts in parts.yaml (twice). The cluster needs an image lowtoggle, which the
# Containerfile makes, and a claim models that many nodes can write (ReadWriteMany). sed changes these names in all files.
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
			echo "$job failed: read its logs (kubectl logs -l job-name=$job --prefix), mend the cause and run this step and the later ones again" >&2
			exit 1
			;;
		esac
		sleep 5
	done
done
