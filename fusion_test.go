package main

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var fused = flag.Bool("fused", false, "compile for arm64 and look for fused sums")

// deciding are the packages whose arithmetic determines the bytes of plans and of converted weights.
var deciding = []string{"./internal/elementary", "./weights/...", "./cost/...", "./transform/...", "./gemm/forward/...", "./gemm/hessian", "./gemm/divergence",
	"./gemm/evaluate", "./gemm/decoder", "./gemm/predict", "./gemm/operand", "./gemm/sgemm"}

// TestNothingIsFused compiles the packages that decide bytes for arm64, and lists every fused multiply-add of the
// compiler. A processor without this instruction rounds twice and gives other bytes. float64(x*y)+z prevents the
// fusion. Code that needs a single rounding calls math.FMA.
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

// sameBits are the names in package math whose results have the same bits on every processor.
var sameBits = regexp.MustCompile(`^(Abs|Ceil|Copysign|FMA|Float32bits|Float32frombits|Float64bits|Float64frombits|Floor|Frexp|Inf|IsInf|IsNaN|Ldexp|Max|Min|Mod|Modf|NaN|` +
	`Nextafter32|Nextafter|Round|RoundToEven|Signbit|Sqrt|Trunc|(Max|Min|Smallest).+|Pi|E|Ln2|Ln10|Sqrt2|SqrtPi)$`)

// TestSameBitsEverywhere: packages that decide bytes call package elementary where package math's last bits depend on the processor.
func TestSameBitsEverywhere(t *testing.T) {
	calls := regexp.MustCompile(`\bmath\.(\w+)`)
	for _, pattern := range deciding[1:] {
		root, deep := strings.CutSuffix(strings.TrimPrefix(pattern, "./"), "/...")
		err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case e.IsDir() && path != root && (!deep || e.Name() == "_gen" || e.Name() == "testdata"):
				return fs.SkipDir
			case e.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			code, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for i, line := range strings.Split(string(code), "\n") {
				line, _, _ = strings.Cut(line, "//")
				for _, name := range calls.FindAllStringSubmatch(line, -1) {
					// TestQuantilesAreFrozen tests the table of quantiles.
					if !sameBits.MatchString(name[1]) && (path != "weights/synth/random.go" || name[1] != "Erfinv") {
						t.Errorf("%s:%d: use internal/elementary in place of math.%s", path, i+1, name[1])
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}
