package bench

import "fmt"

// scaleClaims are the claims about the times of large models in docs/scale.md, and about the estimates from them.
func scaleClaims(e *evidence) []claim {
	const file = "scale-cpu.txt"
	number := func(pattern string) float64 { return e.number(e.record(file, pattern)[0]) }
	plan, part, finish := number(`(?m)^plan (\S+) s`), number(`(?m)^part (\S+) s`), number(`(?m)^finish (\S+) s`)
	work := number(`(?m)^part \S+ s, (\S+) s of processor`)
	copied := number(`(?m)^cp and sync of that part's file (\S+) s`)
	small, ratio := number(`(?m)^small (\S+) s, cp`), number(`(?m)^small \S+ s, cp and sync \S+ s, ratio (\S+)`)
	const (
		gigabytes     = 2.07   // of the small model
		v3            = 673.16 // of DeepSeek-V3
		eight, seven0 = 16.1, 141.1
	)
	files, machines := 163., 16.
	alone := plan + files*part + finish
	many := plan + float64(int(files/machines)+1)*part + finish
	minutes := func(seconds float64) string { return printed(1, seconds/60) }
	return []claim{
		says("A plan of more than {} MiB is", printed(0, e.shifted("transform/plan/packed.go", "const plainBytes")/(1<<20))),
		says("at most 10 minutes | {} minutes |", minutes(plan)),
		says("memory of this `plan`, mapped files included | at most 2 GB | {} GB |", printed(2, number(`(?m)^plan .* (\d+) MB`)/1e3)),
		says("the plan's file | at most 20 MB | {} MB |", printed(1, number(`(?m)^plan .* (\d+) bytes`)/1e6)),
		says("at most 2 | {} ({} s and {} s) |", printed(1, part/copied), printed(1, part), printed(1, copied)),
		says("The measured part of 163 takes {} s of processor time, so two cores need at least {} s.", printed(1, work), printed(1, work/2)),
		says("SHA-256 of the source and the result is {} % of the processor time.", printed(0, number(`SHA-256 (\d+) %`))),
		says("the headers of all files is {} %.", printed(0, number(`identity of the model (\d+) %`)+number(`other opening (\d+) %`))),
		says("SHA-256 uses one core for {} s, which", printed(1, number(`SHA-256 25 % .* run: (\S+) s on one core`))),
		says("at most 10 s | {} s |", printed(1, finish)),
		says("at most 1.1 | {} ({} s) |", printed(1, ratio), printed(2, small)),
		says("the source and the result takes {} of the {} s of processor time", printed(1, number(`, (\S+) s of it SHA-256`)), printed(1, number(`(?m)^small (\S+) s of processor`))),
		says("would still give a ratio of {}.\n", printed(1, number(`sync 1\.47 s, ratio (\S+)`))),
		says("| 8 B, BF16 | {} GB | {} GB × {} s / {} GB | {} minutes |", printed(0, eight), printed(1, eight), printed(2, small), printed(2, gigabytes), minutes(eight*small/gigabytes)),
		says("| 70 B, BF16 | {} GB | {} GB × {} s / {} GB | {} minutes |", printed(0, seven0), printed(1, seven0), printed(2, small), printed(2, gigabytes), minutes(seven0*small/gigabytes)),
		says("| 671 B, FP8, one machine | {} GB | {} s + {} × {} s + {} s | {} minutes |", printed(0, v3), printed(0, plan), fmt.Sprint(files), printed(1, part), printed(0, finish), minutes(alone)),
		says("| 671 B, FP8, 16 machines | {} GB | {} s + {} × {} s + {} s | {} minutes; {} machine-hours |", printed(0, v3), printed(0, plan), fmt.Sprint(int(files/machines)+1), printed(1, part),
			printed(0, finish), minutes(many), printed(1, (plan+files*part+finish)/3600)),
	}
}
