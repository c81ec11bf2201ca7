package transform

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/cuda"
	"github.com/lowtoggle/lowtoggle/gemm/cuda/rounder"
	"github.com/lowtoggle/lowtoggle/gemm/evaluate"
	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/internal/testdevice"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/rounding"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// pretended is a device that computes on the CPU.
type pretended struct {
	name     string
	tokens   int // added to the number of tokens in the statistics
	longest  int
	open     int // number of open models
	compared int
	fails    error
	rounder  rounding.Device // nil: the CPU rounds
	released int
}

func (d *pretended) Name() string { return d.name }

func (d *pretended) Rounder(context.Context) (rounding.Device, error) {
	return d.rounder, nil
}

func (d *pretended) Release() error {
	d.released++
	return nil
}

func (d *pretended) Calibrate(s *evaluate.Scorer, m *weights.Model, longest int) evaluate.Calibrated {
	d.longest = longest
	d.open++
	return &pretendedModel{s.OnCPU(m), d, s.Decoder.Layers()}
}

func (d *pretended) Compare(ctx context.Context, s *evaluate.Scorer, before, after *weights.Model) (*evaluate.Comparison, error) {
	d.compared++
	return s.Compare(ctx, before, after, nil)
}

type pretendedModel struct {
	evaluate.Calibrated
	device *pretended
	layers []forward.Layer
}

func (m *pretendedModel) Close() error {
	m.device.open--
	return m.Calibrated.Close()
}

func (m *pretendedModel) Collect(ctx context.Context, tokens [][]int32, dir string, o hessian.Options) (*hessian.Store, error) {
	if m.device.fails != nil {
		return nil, m.device.fails
	}
	return m.Calibrated.Collect(ctx, tokens[m.device.tokens:], dir, o)
}

func (m *pretendedModel) CollectAndScore(ctx context.Context, tokens [][]int32, dir string, o hessian.Options) (*hessian.Store, evaluate.Reference, error) {
	s, r, err := m.Calibrated.CollectAndScore(ctx, tokens, dir, o)
	return s, impatient{r, m.layers}, err
}

// impatient requests the values of all layers at once.
type impatient struct {
	evaluate.Reference
	layers []forward.Layer
}

func (r impatient) PerLayer(ctx context.Context, base, changed search.Values, done func(string, float64) error) error {
	all, err := r.ask(ctx, changed)
	if err != nil {
		return err
	}
	return r.Reference.PerLayer(ctx, base, all, done)
}

func (r impatient) WholeModel(ctx context.Context, changed search.Values) (float64, float64, [2]float64, error) {
	all, err := r.ask(ctx, changed)
	if err != nil {
		return 0, 0, [2]float64{}, err
	}
	return r.Reference.WholeModel(ctx, all)
}

func (r impatient) ask(ctx context.Context, changed search.Values) (asked, error) {
	values := make([][]float32, len(r.layers))
	err := parallel.Run(ctx, len(values), 4, func(ctx context.Context, i int) (err error) {
		values[i], err = changed.Tensor(ctx, r.layers[i].Tensor)
		return err
	})
	all := asked{}
	for i, l := range r.layers {
		all[l.Tensor] = values[i]
	}
	return all, err
}

type asked map[string][]float32

func (a asked) Tensor(_ context.Context, name string) ([]float32, error) { return a[name], nil }

// deviceRun plans and converts the demo model with a device; nil: on the CPU.
type deviceRun struct {
	t     *testing.T
	model *weights.Model
	file  *tokens.File
	dir   string // of the search
}

func (r deviceRun) tokens(d Device) *Tokens {
	tok, err := NewTokens(r.model, r.file, nil, nil, 0)
	testmodel.OK(r.t, err)
	tok.Device, tok.Dir, tok.Keep = d, r.dir, true
	return tok
}

func (r deviceRun) convert(d Device, given *plan.Plan) (*Conversion, string, error) {
	passes, err := ParsePasses("trellis,compensate")
	testmodel.OK(r.t, err)
	most, out := 0.02, filepath.Join(r.t.TempDir(), "out")
	c, err := Convert(r.t.Context(), r.model, out, ConvertOptions{Given: given, Options: Options{Passes: passes, Budget: pass.Budget{MaxLoss: &most},
		Tokens: r.tokens(d), Cost: testmodel.TogglesCost{}, Workload: cost.Workload{Prefill: 1}}})
	return c, out, err
}

// TestDevice: a device with the CPU's results gives the CPU's plan and model, in all bits. The plan names the device.
func TestDevice(t *testing.T) {
	m, file := demoModel(t)
	r := deviceRun{t, m, file, t.TempDir()}
	cpu, cpuOut, err := r.convert(nil, nil)
	testmodel.OK(t, err)
	if q := cpu.Plan.Request; q.Device != "" || q.Statistics != "" || q.Hessians == "" {
		t.Errorf("a plan made on the CPU speaks of a device: %+v", q)
	}
	rounder := testdevice.New()
	card := &pretended{name: "a card", rounder: rounder}
	gpu, gpuOut, err := r.convert(card, nil)
	testmodel.OK(t, err)
	if rounder.Together != len(pass.Lambdas()) || rounder.Rounds == 0 || rounder.Powers == 0 || card.released != 1 {
		t.Errorf("%d choosers were rounded together in %d calls, %d powers were computed, and memory was freed %d times",
			rounder.Together, rounder.Rounds, rounder.Powers, card.released)
	}
	if most := len(cpu.Plan.Predictions); len(rounder.Loaded) >= 2*most {
		t.Errorf("%d Hessians for %d layers: layers do not share the Hessians of common inputs", len(rounder.Loaded), most)
	}
	if card.open != 0 || card.compared != 1 || card.longest != file.Parts[0].T {
		t.Errorf("%d models are still on the device, %d comparisons were made there, for sequences of %d tokens", card.open, card.compared, card.longest)
	}
	q := gpu.Plan.Request
	if q.Device != "a card" || q.Statistics == "" || q.Hessians == cpu.Plan.Request.Hessians {
		t.Errorf("the plan does not name its device: %+v", q)
	}
	same := *gpu.Plan
	same.Request = cpu.Plan.Request
	a, err := cpu.Plan.Encode()
	testmodel.OK(t, err)
	b, err := same.Encode()
	testmodel.OK(t, err)
	if string(a) != string(b) {
		t.Errorf("the plans differ:\n%s\n%s", a, b)
	}
	if gpu.Loss.Comparison != cpu.Loss.Comparison || gpu.Loss.After != cpu.Loss.After {
		t.Errorf("the losses differ: %+v and %+v", gpu.Loss, cpu.Loss)
	}
	sameBytes(t, cpuOut, gpuOut)

	// The plan can be applied on this device, also from other folders, and on no other.
	r.dir = t.TempDir()
	_, again, err := r.convert(&pretended{name: "a card"}, gpu.Plan)
	testmodel.OK(t, err)
	sameBytes(t, gpuOut, again)
	for name, c := range map[string]struct {
		device Device
		plan   *plan.Plan
		says   []string
	}{
		"CPU's plan on a card":  {&pretended{name: "a card"}, cpu.Plan, []string{"statistics were computed on the CPU", "would compute them on a card"}},
		"card's plan on CPU":    {nil, gpu.Plan, []string{"statistics were computed on a card", "would compute them on the CPU"}},
		"card's plan elsewhere": {&pretended{name: "another"}, gpu.Plan, []string{"statistics were computed on a card", "would compute them on another"}},
		"other statistics":      {&pretended{name: "a card", tokens: 1}, gpu.Plan, []string{"a card now computes other calibration statistics"}},
	} {
		r.dir = t.TempDir()
		_, out, err := r.convert(c.device, c.plan)
		testmodel.WantError(t, err, c.says...)
		if strings.Contains(err.Error(), "give the tokens") {
			t.Errorf("%s: other tokens are no remedy: %v", name, err)
		}
		if !errors.Is(err, ErrOtherDevice) {
			t.Errorf("%s: error %v is not of class ErrOtherDevice", name, err)
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: a file was written", name)
		}
	}
}

// TestGPURounder: in a whole search, a GPU rounds with the bits of the CPU. Without a card, the test is skipped.
func TestGPURounder(t *testing.T) {
	gpu, err := cuda.Open(0)
	if errors.Is(err, cuda.ErrNoGPU) {
		t.Skip(err)
	}
	testmodel.OK(t, err)
	defer gpu.Close()
	on, err := rounder.New(t.Context(), gpu)
	testmodel.OK(t, err)
	m, file := demoModel(t)
	r := deviceRun{t, m, file, t.TempDir()}
	want, wantOut, err := r.convert(&pretended{name: "a card"}, nil)
	testmodel.OK(t, err)
	r.dir = t.TempDir()
	got, gotOut, err := r.convert(&pretended{name: "a card", rounder: on}, nil)
	testmodel.OK(t, err)
	a, err := want.Plan.Encode()
	testmodel.OK(t, err)
	b, err := got.Plan.Encode()
	testmodel.OK(t, err)
	if string(a) != string(b) {
		t.Errorf("the plans differ:\n%s\n%s", a, b)
	}
	sameBytes(t, wantOut, gotOut)
	testmodel.OK(t, on.Close())
}

// TestDevicesDoNotShareStatistics: in one folder, a device's statistics are never used for the CPU, nor the CPU's for
// a device.
func TestDevicesDoNotShareStatistics(t *testing.T) {
	m, file := demoModel(t)
	r := deviceRun{t, m, file, t.TempDir()}
	var digests []string
	for _, d := range []Device{nil, &pretended{name: "a card", tokens: 1}, nil} {
		tok := r.tokens(d)
		h, err := tok.hessians(t.Context(), false, 0, nil)
		testmodel.OK(t, err)
		testmodel.OK(t, tok.release())
		digests = append(digests, h.fit.Digest())
	}
	tok, size := r.tokens(nil), int64(0)
	for _, part := range []string{"fit", "held"} {
		entries, err := os.ReadDir(filepath.Join(r.dir, part))
		testmodel.OK(t, err)
		for _, e := range entries {
			info, err := e.Info()
			testmodel.OK(t, err)
			size += info.Size()
		}
	}
	if e := tok.Effort(); e.Statistics > size || e.Statistics < size*3/4 || e.Layers == 0 || e.Few > e.Held || e.Held >= e.Fit {
		t.Errorf("effort %+v, the statistics have %d bytes", e, size)
	}
	if digests[0] == digests[1] || digests[0] != digests[2] {
		t.Errorf("statistics of the CPU, a card and the CPU again: %q", digests)
	}
}

// TestDeviceFails: a device's failure is returned as the error, and the folder of a search that is not kept is
// removed.
func TestDeviceFails(t *testing.T) {
	m, file := demoModel(t)
	r := deviceRun{t, m, file, filepath.Join(t.TempDir(), "search")}
	broken := errors.New("the card is on fire")
	tok := r.tokens(&pretended{name: "a card", fails: broken})
	tok.Keep = false
	passes, err := ParsePasses("trellis,compensate")
	testmodel.OK(t, err)
	most := 0.02
	_, err = Plan(t.Context(), m, Options{Passes: passes, Budget: pass.Budget{MaxLoss: &most}, Tokens: tok, Cost: testmodel.TogglesCost{}})
	if !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
	if _, err := os.Stat(r.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s still exists: %v", r.dir, err)
	}
	if card := tok.Device.(*pretended); card.open != 0 {
		t.Errorf("%d models are still on the device", card.open)
	}
}

func sameBytes(t *testing.T, a, b string) {
	t.Helper()
	x, y := testmodel.Files(t, a), testmodel.Files(t, b)
	for name := range x {
		if filepath.Ext(name) == ".safetensors" && string(x[name]) != string(y[name]) {
			t.Errorf("%s differs", name)
		}
	}
}
