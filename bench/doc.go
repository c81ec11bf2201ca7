// Package bench holds the project's experiments and benchmarks. Run all of them with
//
//	go test ./bench -run '^$' -bench . -benchtime 3x -timeout 30m
//
// Convert and Reorder write folders of up to 4 GB in total to the temporary folder and remove
// them. Recorded results, with the machine they were taken on, are in bench/results.
package bench
