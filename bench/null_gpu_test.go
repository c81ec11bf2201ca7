package bench

import (
	"encoding/json"
	"errors"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
)

var (
	nullOut    = flag.String("null", "", "add null comparisons on this card to null-pooled.json in this folder")
	nullCard   = flag.Int("null-device", 0, "number of the card")
	nullSim    = flag.Bool("null-simulated", false, "run on a simulated card: the figures mean nothing")
	nullRuns   = flag.Int("null-runs", 10, "number of comparisons")
	nullDecode = flag.Int("null-decode", 1, "number of these that are of decode, with 16 tokens")
	nullTime   = flag.Duration("null-time", 8*time.Second, "time of the blocks of a comparison")
	nullSide   = flag.Int("null-side", 8192, "number of outputs and of inputs, and of tokens in prefill")
	nullWindow = flag.Duration("null-window", time.Second, "length of a reading")
)

// nullRecord is null comparisons of the same weights. Their one variant, with nullApart as its name, is these weights in other
// memory.
type nullRecord struct {
	Command string    `json:"command"`
	Runs    []nullRun `json:"runs"`
}

type nullRun struct {
	Card string          `json:"card_id"`
	Run  *measure.Result `json:"run"`
}

const nullApart = "in its own memory"

// TestGPUNull adds comparisons to a record. It skips without -null.
func TestGPUNull(t *testing.T) {
	if *nullOut == "" {
		t.Skip("-null FOLDER measures")
	}
	m, err := measure.Open(*nullCard)
	if *nullSim {
		m, err = measure.Simulated(power.DefaultSim()), nil
	}
	testmodel.OK(t, err)
	defer m.Close()
	file := filepath.Join(*nullOut, "null-pooled.json")
	var record nullRecord
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &record)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	record.Command = strings.Join(os.Args, " ")
	random := func(text string, rows int) gemm.Matrix {
		data, err := pattern.MustParse(text).Generate(t.Context(), pattern.Spec{DType: weights.BF16, Rows: rows, Cols: *nullSide, Seed: 1}, 0)
		testmodel.OK(t, err)
		return gemm.Matrix{DType: weights.BF16, Rows: rows, Cols: *nullSide, Data: data}
	}
	w, long := random("normal(0,0.02)", *nullSide), random("normal(0,1)", *nullSide)
	few := gemm.Matrix{DType: weights.BF16, Rows: cost.DecodeTokens, Cols: *nullSide, Data: long.Data[:2*cost.DecodeTokens**nullSide]}
	o := measure.Options{Meter: power.Options{Time: *nullTime, Window: *nullWindow, CapSettle: time.Second, WarmUp: 10 * time.Second, Precision: 1e-9, Command: record.Command}}
	for i := range *nullRuns {
		x := long
		if o.Cold = i < *nullDecode; o.Cold {
			x = few
		}
		// This takes a part of the memory that the comparison before has freed, so that addresses differ.
		_, err := m.NewMix(t.Context(), "space", nil, []cuda.Traffic{{Kind: cuda.Fill, Bytes: int64(2*i+1) << 24}}, cuda.Options{Repeat: 1})
		testmodel.OK(t, err)
		products := []cuda.Product{{Name: "w", Problem: gemm.Problem{M: x.Rows, N: *nullSide, K: *nullSide, Type: arith.BF16}, X: x, W: w}}
		o.Meter.Seed, o.Meter.Date = uint64(len(record.Runs)), time.Now().UTC()
		r, err := measure.Compare(t.Context(), m, measure.Candidate{Name: "normal(0,0.02)", Products: products},
			[]measure.Candidate{{Name: nullApart, Products: products, Apart: true}}, o)
		testmodel.OK(t, err)
		t.Logf("%d tokens: copy %.4f, time %.4f; %s %.4f, time %.4f; %.0f W, %d blocks, %v", x.Rows, r.Null.RelativeEnergy, r.Null.RelativeTime, nullApart,
			r.Variants[0].RelativeEnergy, r.Variants[0].RelativeTime, r.Baseline.Watts, r.Null.Blocks, r.Invalid)
		o.Meter.SelfTest, o.Meter.WarmUp = r.SelfTest, 2*time.Second // the card is warm
		r.Steady, r.SelfTest = nil, nil                              // the record stays small
		record.Runs = append(record.Runs, nullRun{m.Card().Info().ID(), r})
		data, err := json.Marshal(record) // after each comparison, so that nothing is lost
		testmodel.OK(t, err)
		testmodel.OK(t, os.WriteFile(file, data, 0o666))
	}
}
