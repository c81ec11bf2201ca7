package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm"

	"github.com/lowtoggle/lowtoggle/cost/arith"
)

// scale is a source for the fake compiler.
const scale = `extern "C" __global__ void scale(float *y, const float *x, int n, float by, double offset) {}
extern "C" __global__ void __launch_bounds__(256) empty() {}`

// wantNoCompiler checks that the error is an ErrNoCompiler whose text has all parts, and ErrNoCompiler's text once.
func wantNoCompiler(t *testing.T, err error, parts ...string) {
	t.Helper()
	if !errors.Is(err, ErrNoCompiler) || errors.Is(err, ErrNoGPU) {
		t.Fatalf("%v is no ErrNoCompiler", err)
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("%v\ndoes not say %q", err, p)
		}
	}
	if n := strings.Count(err.Error(), ErrNoCompiler.Error()); n != 1 {
		t.Errorf("%v\nsays %q %d times", err, ErrNoCompiler, n)
	}
}

// With a missing or broken NVRTC the card can still be opened; only compiling returns the error.
func TestLoadCompiler(t *testing.T) {
	const driver, blas, nvrtc12, nvrtc13 = "libcuda.so.1", "libcublasLt.so.12", "libnvrtc.so.12", "/usr/local/cuda-13.0/lib64/libnvrtc.so.13"
	for _, c := range []struct {
		name    string
		paths   []string
		missing string
		change  func(*card)
		driver  int32
		want    []string // parts of the error; none: success
		library string
	}{
		{name: "newest", paths: []string{nvrtc12, nvrtc13}, library: nvrtc13},
		{name: "a driver for CUDA 12 takes 12", paths: []string{nvrtc12, nvrtc13}, driver: 12040, library: nvrtc12},
		{name: "none", want: []string{"libnvrtc.so.13 or libnvrtc.so.12 (NVIDIA's run-time compiler) was not found on the loader's path or in ",
			"/usr/local/cuda/lib64", "install the CUDA toolkit (its nvrtc package is enough), or set CUDA_HOME to the folder of a toolkit"}},
		{name: "only one newer than the driver", paths: []string{nvrtc13}, driver: 12040, want: []string{"libnvrtc.so.12 (NVIDIA"}},
		{name: "broken", paths: []string{nvrtc13}, missing: "nvrtcGetCUBIN", want: []string{"undefined symbol: nvrtcGetCUBIN"}},
		{name: "too old", paths: []string{nvrtc12}, change: func(c *card) { c.nvrtc.major, c.nvrtc.minor = 11, 8 },
			want: []string{"libnvrtc.so.12 is version 11.8, but 12.0 or later is needed: update the CUDA toolkit"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			card := newCard(t)
			if c.change != nil {
				c.change(card)
			}
			l := fakeLoader{map[string]bool{driver: true, blas: true}, card.api(), card.nvrtc.functions(), c.missing}
			if c.driver != 0 {
				l.api.cuDriverGetVersion = func(v *int32) result { *v = c.driver; return 0 }
			}
			for _, p := range c.paths {
				l.paths[p] = true
			}
			m, _ := pretend(t, nil, nvrtc13)
			a, err := load(l, m)
			if err != nil {
				t.Fatal(err)
			}
			compiler, err := a.compiler()
			if len(c.want) == 0 {
				if err != nil || compiler.library != c.library {
					t.Fatal(compiler, err)
				}
				return
			}
			wantNoCompiler(t, err, c.want...)
			d, err := open(a, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			_, err = d.Compile(t.Context(), "scale.cu", scale)
			wantNoCompiler(t, err, c.want...)
			p := gemm.Problem{M: 2, N: 3, K: 4, Type: arith.BF16}
			x, w := operands(p, 1)
			if _, err := check(d, p, x, w); err != nil {
				t.Errorf("products need no compiler: %v", err)
			}
		})
	}
}

func TestCompileForTheCard(t *testing.T) {
	c := newCard(t)
	c.capability = 86
	compile(t, openFake(t, c), scale)
	if want := "--gpu-architecture=sm_86"; !slices.Contains(c.nvrtc.options, want) {
		t.Errorf("options %q, want %q", c.nvrtc.options, want)
	}
}

func TestCompileRefuses(t *testing.T) {
	var long strings.Builder
	for i := range 200 {
		fmt.Fprintf(&long, "scale.cu(%d): error: line %d\n", i, i)
	}
	for _, c := range []struct {
		name   string
		change func(*card)
		source string
		want   []string
	}{
		{name: "card", change: func(c *card) { c.nvrtc.newest = 89 },
			want: []string{"scale.cu does not compile for compute capability 9.0 with libfakenvrtc.so", "newer toolkit", "PLANTED 5 (5):\nnvrtc: error: invalid value for --gpu-architecture"}},
		{name: "old card", change: func(c *card) { c.capability = 75 },
			want: []string{"has compute capability 7.5, but kernels compiled at run time need 8.0 (Ampere) or later"}},
		{name: "source", source: `extern "C" __global__ void odd(short n) {}`, want: []string{"PLANTED 6 (6):\nerror: kernel odd: parameter \"short n\""}},
		{name: "long log", change: func(c *card) { c.nvrtc.log = long.String() }, want: []string{"error: line 19"}},
		{name: "log without a size", change: func(c *card) { c.nvrtc.log, c.fail["nvrtcGetProgramLogSize"] = "lost", 0 }, want: []string{"PLANTED 6 (6)"}},
		{name: "log that is not given", change: func(c *card) { c.nvrtc.log, c.fail["nvrtcGetProgramLog"] = "lost", 0 }, want: []string{"PLANTED 6 (6)"}},
		{name: "no log", change: func(c *card) { c.fail["nvrtcCompileProgram"] = 0 }, want: []string{"PLANTED 11 (11)"}},
		{name: "no machine code", change: func(c *card) { c.nvrtc.nothing = true }, want: []string{"libfakenvrtc.so returned no machine code for scale.cu"}},
		{name: "nvrtcCreateProgram", change: func(c *card) { c.fail["nvrtcCreateProgram"] = 0 }, want: []string{"nvrtcCreateProgram: PLANTED 1 (1)"}},
		{name: "nvrtcGetCUBINSize", change: func(c *card) { c.fail["nvrtcGetCUBINSize"] = 0 }, want: []string{"nvrtcGetCUBINSize: PLANTED 7 (7)"}},
		{name: "nvrtcGetCUBIN", change: func(c *card) { c.fail["nvrtcGetCUBIN"] = 0 }, want: []string{"nvrtcGetCUBIN: PLANTED 7 (7)"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			card := newCard(t)
			if c.change != nil {
				c.change(card)
			}
			d := openFake(t, card)
			source := scale
			if c.source != "" {
				source = c.source
			}
			before := card.kinds()
			m, err := d.Compile(t.Context(), "scale.cu", source)
			if m != nil {
				t.Error("a module was returned")
			}
			wantNoCompiler(t, err, c.want...)
			if strings.Contains(err.Error(), "line 20") || strings.HasSuffix(err.Error(), "\n") || strings.Contains(err.Error(), "lost") {
				t.Errorf("%v\nis longer than it should be", err)
			}
			sameKinds(t, card, before)
		})
	}
}
