// Command mutate changes the module's core code in one place at a time and runs the tests. A changed program is a mutant. If
// no test fails, no test checks the behaviour that the mutant changes.
//
//	go run ./bench/mutate -group cost -n 60 -seed 1 -o bench/results/mutants/cost.json
//	go run ./bench/mutate -group cost -list            # every mutant
//	go run ./bench/mutate -survivors bench/results/mutants/cost.json
//
// A mutant changes arithmetic, a comparison or a constant, swaps arguments or indices, or ignores an error. The seed draws a
// sample of the possible mutants. go test -overlay compiles all mutants of a package into one test program, so no source file
// changes. An environment variable switches one mutant on. A mutant of a constant expression cannot be switched and is
// compiled alone. A mutant that does not compile is replaced by the next one.  The short tests of the mutant's package run
// first. If they pass, all tests of the package run, and then the tests of other packages that check its behaviour. Tests
// that do not run the mutant's code are left out. The package rapid writes inputs of failures to testdata/rapid, which git
// ignores. If the file of -o exists, its record is continued. -survivors runs the survivors of a record again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

// groups has the packages of each group, and tests of other packages that check laws of their code.
var groups = map[string]struct {
	packages []string
	laws     []suite
}{
	"weights": {[]string{"weights", "weights/quant", "weights/quantise", "weights/tokens", "weights/synth", "internal/codebytes"},
		short("weights/quant", "weights/arch", "transform/program")},
	"transform": {[]string{"transform/order", "transform/rounding", "transform/program", "transform/pass", "transform/verify", "transform/search", "transform/plan"},
		append(short("transform/pass", "transform"), suite{pkg: ".", only: "^TestFrozen$"})},
	"cost":  {[]string{"cost", "cost/pattern", "cost/nnls", "cost/arith", "cost/component"}, short("cost", "bench/probe")},
	"power": {[]string{"gemm/power"}, short("gemm/measure", "gemm/sweep")},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutate", flag.ContinueOnError)
	name := flags.String("group", "", "weights, transform, cost or power")
	count := flags.Int("n", 60, "mutants")
	seed := flags.Uint64("seed", 1, "chooses the mutants")
	output := flags.String("o", "", "add to the record in this file")
	again := flags.String("survivors", "", "run the survivors of this record again")
	list := flags.Bool("list", false, "print all mutants, and run nothing")
	short := flags.Bool("short", false, "run only the short tests of a mutant's package; run the survivors again later")
	length := flags.Duration("for", 24*time.Hour, "start no mutant after this time")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%s: unexpected argument", flags.Arg(0))
	}
	path := *output
	if *again != "" {
		path = *again
	}
	rec, err := readRecord(path)
	if err != nil {
		return err
	}
	if *again != "" {
		*name, *seed, *count = rec.Group, rec.Seed, rec.Asked
	}
	group, ok := groups[*name]
	if !ok {
		return fmt.Errorf("-group %q: give weights, transform, cost or power", *name)
	}
	var all []mutant
	for _, pkg := range group.packages {
		found, err := mutants(pkg)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	if *list {
		for _, m := range all {
			fmt.Println(m)
		}
		return nil
	}
	if rec.Group != "" && (rec.Group != *name || rec.Seed != *seed) {
		return fmt.Errorf("%s holds mutants of %s by seed %d: give another file", path, rec.Group, rec.Seed)
	}
	rec.Group, rec.Seed, rec.Asked, rec.Possible = *name, *seed, max(*count, rec.Asked), len(all)
	rec.Command = "mutate " + strings.Join(args, " ")
	r := rand.New(rand.NewPCG(*seed, 0))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	end := time.Now().Add(*length)
	for time.Now().Before(end) {
		chosen := rec.next(all, *count, *again != "")
		if len(chosen) == 0 {
			break
		}
		if err := rec.test(ctx, chosen, group.laws, *short, path, end); err != nil {
			return err
		}
		if *again != "" {
			break
		}
	}
	fmt.Println(rec.summary())
	return nil
}

// next returns the mutants to test, in the order of the sample: the first count mutants, without those in the record. If
// again is true, it returns all survivors of the record instead.
func (r *record) next(all []mutant, count int, again bool) (chosen []mutant) {
	for _, m := range all {
		if m.symmetric {
			continue
		}
		at := r.find(m)
		switch {
		case again && at >= 0 && !r.Mutants[at].Killed:
		case !again && len(r.Mutants)+len(chosen) < count && at < 0 && !slices.ContainsFunc(r.NotCompiled, m.same):
		default:
			continue
		}
		chosen = append(chosen, m)
	}
	return chosen
}

// find returns the index of a mutant in the record; -1 if the record does not have it.
func (r *record) find(m mutant) int {
	return slices.IndexFunc(r.Mutants, func(o outcome) bool { return o.mutant.same(m) })
}

// test tests mutants until a time. It adds each outcome to the record and writes the record to its file.
func (r *record) test(ctx context.Context, chosen []mutant, laws []suite, short bool, path string, end time.Time) error {
	folder, err := os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	t, err := newTester(ctx, folder, chosen, laws, short)
	if err != nil {
		return err
	}
	for i, m := range chosen {
		if time.Now().After(end) {
			return nil
		}
		o, err := t.try(ctx, i)
		if err != nil {
			return err
		}
		switch at := r.find(m); {
		case o == nil:
			r.NotCompiled = append(r.NotCompiled, m)
		case at >= 0:
			r.Mutants[at] = *o
		default:
			r.Mutants = append(r.Mutants, *o)
		}
		if o != nil {
			fmt.Println(o)
		}
		if path != "" {
			if err := r.write(path); err != nil {
				return err
			}
		}
	}
	return nil
}
