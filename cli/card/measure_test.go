package card

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
)

// number formats a float so that parsing gives the same value.
func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }

func TestParseShare(t *testing.T) {
	for text, want := range map[string]float64{"0.5%": 0.005, "0.005": 0.005, " 3 % ": 0.03, "50%": 0.5, "1e-4": 1e-4, ".3%": 0.003} {
		if have, err := parseShare(text, usualPrecision); err != nil || have != want {
			t.Errorf("%q is %v (%v), want %v", text, have, err, want)
		}
	}
	for text, want := range map[string]string{
		"": `"" is not a share: write 0.5% or 0.005`, "%": `"%" is not a share`, "half": `"half" is not a share`, "1%%": `"1%%" is not a share`,
		"0.5‰": "is not a share", "0": "give a share between 0 and 1", "1": "between 0 and 1", "100%": "between 0 and 1", "-1%": "between 0 and 1",
		"nan": "between 0 and 1", "inf": "between 0 and 1", "0%": "between 0 and 1",
	} {
		if have, err := parseShare(text, usualPrecision); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is %v, error %v, want %q", text, have, err, want)
		}
	}
}

func TestShareReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.Float64Range(1e-9, 0.999).Draw(t, "share")
		if have, err := parseShare(number(want), usualPrecision); err != nil || have != want {
			t.Fatalf("%v became %v (%v)", want, have, err)
		}
	})
}

func TestReadShape(t *testing.T) {
	const drawn, file = false, true
	bf16 := func(m, n, k int) *gemm.Problem { return &gemm.Problem{M: m, N: n, K: k, Type: arith.BF16} }
	for _, c := range []struct {
		file  bool
		dtype arith.Type
		text  string
		m     int
		shape *gemm.Problem
	}{
		{drawn, 0, "", 8192, bf16(8192, 8192, 8192)},
		{drawn, 0, "3x5x7", 3, bf16(3, 5, 7)},
		{drawn, arith.FP8, "3x5x7", 3, &gemm.Problem{M: 3, N: 5, K: 7, Type: arith.FP8}},
		{drawn, arith.INT8, "1x1x131071", 1, &gemm.Problem{M: 1, N: 1, K: 131071, Type: arith.INT8}},
		{file, 0, "", 0, nil},
		{file, arith.FP8, "16", 16, nil},
		{file, 0, "3x5x7", 3, bf16(3, 5, 7)},
	} {
		q := request{}
		q.dtype = c.dtype
		err := q.readShape(c.text, c.file)
		same := q.shape == c.shape || q.shape != nil && c.shape != nil && *q.shape == *c.shape
		if err != nil || q.m != c.m || !same {
			t.Errorf("%q, of a file %v: %d tokens, %v (%v)", c.text, c.file, q.m, q.shape, err)
		}
	}
	for text, want := range map[string]string{
		"16": "give M, N and K as in 8192x8192x8192", "1x2": "give M, N and K", "1x2x3x4": "give M, N and K",
		"x": `"" is not a size`, "1x2x": `"" is not a size`, "0x1x1": `"0" is not a size`, "1x-1x1": `"-1" is not a size`, "1x1x1.5": `"1.5" is not a size`,
		"1*2*3": `"1*2*3" is not a size`, "1x1x99999999999999999999": "is not a size", "1 x1x1": `"1 " is not a size`,
		"1x1x2147483647": "no dimension may exceed 2³¹",
	} {
		q := request{}
		if err := q.readShape(text, drawn); err == nil || exit.Status(err) != exit.WrongUsage || !strings.Contains(err.Error(), "--shape") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	q := request{}
	q.dtype = arith.INT8
	if err := q.readShape("1x1x131072", drawn); exit.Status(err) != exit.WrongUsage || !strings.Contains(err.Error(), "overflow int32") {
		t.Errorf("overflowing sums: %v", err)
	}
	for _, text := range []string{"1x2", "1x2x3x4", "none"} {
		q := request{}
		if err := q.readShape(text, file); exit.Status(err) != exit.WrongUsage {
			t.Errorf("%q for a tensor: %v", text, err)
		}
	}
}

func TestOpenMachine(t *testing.T) {
	for _, device := range []string{"", "gpu", "0.5", "Simulated", "GPU-1234", "0x0", "-1"} {
		if m, err := openMachine(device, 0); m != nil || exit.Status(err) != exit.WrongUsage || !strings.Contains(err.Error(), "give a number, 0 for the first GPU, or simulated") {
			t.Errorf("%q: %v, %v", device, m, err)
		}
	}
	if m, err := openMachine("1048576", 0); m != nil || exit.Status(err) != exit.NoGPU { // no machine has this many GPUs
		t.Errorf("%v, %v", m, err)
	}
	m, err := openMachine("simulated", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if name := m.Card().Info().Name; name != "simulated card" {
		t.Errorf("the simulated card is called %q", name)
	}
}

// TestInvalidIsShort tries seeds until the noise makes a null comparison differ. This run, and no other, ends with
// status 3.
func TestInvalidIsShort(t *testing.T) {
	seen := map[int]bool{}
	for seed := 0; !seen[exit.Done] || !seen[exit.Short]; seed++ {
		if seed == 200 {
			t.Fatalf("of %d runs none is invalid, or all are", seed)
		}
		stdout, short := runCard(t.Context(), "measure", "--device", "simulated", "--shape", "8x16x32", "--against", "none", "--time", "30s", "--json", "--seed", strconv.Itoa(seed))
		var r measure.Result
		if err := json.Unmarshal(stdout, &r); err != nil {
			t.Fatal(err)
		}
		have := exit.Status(short)
		want := exit.Done
		if !r.Valid {
			want = exit.Short
		}
		if have != want || r.Valid != (len(r.Invalid) == 0) || short != nil && short != exit.ErrShort {
			t.Errorf("seed %d: status %d, valid %v, %q, %v", seed, have, r.Valid, r.Invalid, short)
		}
		seen[have] = true
	}
}
