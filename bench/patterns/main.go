// Command patterns writes weights that show what a GPU does with an operand's bits: one random
// matrix, BF16 from a normal distribution with σ = 0.02, and matrices that are made from it.
//
//	go run ./bench/patterns [-rows 8192] [-cols 8192] [-seed 0] OUT.safetensors
//
// OUT.safetensors must not exist. It gets one tensor [rows, cols] for each pattern; -help lists
// their names. The same rows, cols and seed give the same bytes.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	rows := flag.Int("rows", 8192, "`rows` of each tensor")
	cols := flag.Int("cols", 8192, "`columns` of each tensor")
	seed := flag.Uint64("seed", 0, "chooses the random numbers")
	flag.Usage = usage
	flag.Parse()
	if flag.NArg() != 1 || *rows < 1 || *cols < 1 {
		fmt.Fprintln(os.Stderr, "patterns: give the file to write, after any flags, and at least one row and one column")
		usage()
		os.Exit(2)
	}
	// Interrupted, it removes its file: the length of an unfinished one is already the whole's.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := write(ctx, flag.Arg(0), *rows, *cols, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "patterns:", err)
		os.Exit(1)
	}
}

func usage() {
	fmt.Fprintln(os.Stderr, "usage: go run ./bench/patterns [flags] OUT.safetensors")
	flag.PrintDefaults()
	fmt.Fprintln(os.Stderr, "tensors:")
	for _, p := range patterns {
		fmt.Fprintf(os.Stderr, "  %-18s %s\n", p.name, p.doc)
	}
}
