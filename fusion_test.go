package main

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var fused = flag.Bool("fused", false, "compile for arm64 and look for fused sums")

// deciding are the packages whose arithmetic decides the bytes of plans and of converted weights.
var deciding = []string{"./weights/...", "./cost/...", "./transform/...", "./gemm/forward/...", "./gemm/hessian", "./gemm/divergence",
	"./gemm/evaluate", "./gemm/decoder", "./gemm/predict", "./gemm/operand", "./gemm/sgemm"}

// TestNothingIsFused compiles the packages that decide bytes for arm64, and has the compiler list the sums that it
// computes together with a product, rounded once. Such a sum differs from that of a processor without the instruction.
// float64(x*y)+z keeps the two apart; where one rounding is wanted, math.FMA says so.
func TestNothingIsFused(t *testing.T) {
	if !*fused {
		t.Skip("compiles for arm64: run it with -fused")
	}
	list, err := exec.Command("go", append([]string{"list"}, deciding...)...).Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := slices.DeleteFunc(strings.Fields(string(list)), func(p string) bool { return p == modulePath+"weights/bucket" }) // moves bytes, and has many dependencies
	cmd := exec.Command("go", append([]string{"build", "-trimpath", "-gcflags=-d=fmahash=vy"}, packages...)...)
	cmd.Env = append(os.Environ(), "GOARCH=arm64", "GOOS=linux", "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Products of two float32 are exact in float64.
	exact := regexp.MustCompile(`gemm/sgemm/(fma|plain)\.go:\d+:\d+$`)
	var sums []string
	for _, m := range regexp.MustCompile(`(?m)^fmahash triggered (\S*\.go:\d+:\d+(?:; \S+\.go:\d+:\d+)*)`).FindAllStringSubmatch(string(out), -1) {
		if !exact.MatchString(m[1]) {
			sums = append(sums, m[1])
		}
	}
	slices.Sort(sums)
	if sums = slices.Compact(sums); len(sums) > 0 {
		t.Errorf("on arm64 these sums are fused with a product: write float64(x*y)+z\n%s", strings.Join(sums, "\n"))
	}
	if !exact.Match(regexp.MustCompile(`(?m)gemm/sgemm/fma\.go:\d+:\d+`).Find(out)) {
		t.Error("the compiler does not list what it fuses: gemm/sgemm has such sums")
	}
}
