package hessian_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/gemm/hessian"
)

// elsewhere computes statistics by reading them from a store. change may spoil them; most is the number of inputs
// until it fails.
type elsewhere struct {
	t      *testing.T
	of     *hessian.Store
	groups [][]string
	tokens int
	most   int
	change func(*hessian.Given)
	asked  []string // first layers of the inputs that were wanted
	blocks int
}

var errElsewhere = errors.New("the other machine is gone")

func (e *elsewhere) run(w hessian.Wanted) error {
	e.blocks = w.Blocks
	for _, layers := range e.groups {
		if !w.Input(layers) {
			continue
		}
		if e.most == 0 {
			return errElsewhere
		}
		e.most--
		e.asked = append(e.asked, layers[0])
		h := read(e.t, e.of, layers[0])
		r, _ := e.of.Range(layers[0])
		g := hessian.Given{Layers: layers, Width: h.Rows, Tokens: e.tokens, Min: float32(r.Min), Max: float32(r.Max)}
		for i := range h.Rows {
			g.Triangle = append(g.Triangle, h.Row(i)[i:]...)
		}
		if e.change != nil {
			e.change(&g)
		}
		if err := w.Keep(g); err != nil {
			return err
		}
	}
	return nil
}

// Statistics that are computed elsewhere give the same folder, in one run or in several. run gets the missing inputs, and is not
// called if none are missing.
func TestCollectFrom(t *testing.T) {
	s := tiny(t, "llama-tiny")
	dir := t.TempDir()
	store := s.collect(t, dir, hessian.Options{Key: "a"})
	groups := s.groups(t)
	o := hessian.Options{Key: "a"}
	for _, most := range []int{len(groups), 0, 1, 6} {
		e := &elsewhere{t: t, of: store, groups: groups, tokens: s.length(), most: most}
		to := t.TempDir()
		got, err := hessian.CollectFrom(t.Context(), s.decoder, s.tokens, to, o, e.run)
		if most < len(groups) {
			if !errors.Is(err, errElsewhere) {
				t.Fatalf("error %v, want that of the run", err)
			}
			before := e.asked
			e.most, e.asked = len(groups), nil
			if got, err = hessian.CollectFrom(t.Context(), s.decoder, s.tokens, to, o, e.run); err != nil {
				t.Fatal(err)
			}
			if all := append(before, e.asked...); len(all) != len(groups) {
				t.Errorf("inputs %q were asked for, want each once", all)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.blocks != s.decoder.Blocks()+1 {
			t.Errorf("%d blocks were to be run", e.blocks)
		}
		for _, layer := range store.Layers() {
			if !cmp.Equal(read(t, got, layer), read(t, store, layer)) {
				t.Errorf("%s differs", layer)
			}
			x, _ := store.Range(layer)
			if y, _ := got.Range(layer); x.Min != y.Min || x.Max != y.Max || math.Abs(x.RMS-y.RMS) > 1e-7*x.RMS {
				t.Errorf("range of %s: %v, want %v", layer, y, x)
			}
		}
		if !slices.Equal(got.Layers(), store.Layers()) {
			t.Errorf("layers %q", got.Layers())
		}
		e.most = 0
		again, err := hessian.CollectFrom(t.Context(), s.decoder, s.tokens, to, o, e.run)
		if err != nil || again.Digest() != got.Digest() {
			t.Errorf("the finished folder was not taken: error %v", err)
		}
	}
}

// Statistics that differ in one value have different digests.
func TestDigest(t *testing.T) {
	s := tiny(t, "llama-tiny")
	store := s.collect(t, t.TempDir(), hessian.Options{Key: "a"})
	digests := map[string]bool{}
	for _, change := range []func(*hessian.Given){
		nil,
		func(g *hessian.Given) { g.Min = math.Nextafter32(g.Min, -10) },
		func(g *hessian.Given) { g.Max = math.Nextafter32(g.Max, 10) },
		func(g *hessian.Given) { g.Triangle[0] = math.Nextafter32(g.Triangle[0], 10) },
	} {
		e := &elsewhere{t: t, of: store, groups: s.groups(t), tokens: s.length(), most: 1000, change: change}
		got, err := hessian.CollectFrom(t.Context(), s.decoder, s.tokens, t.TempDir(), hessian.Options{Key: "a"}, e.run)
		if err != nil {
			t.Fatal(err)
		}
		digests[got.Digest()] = true
	}
	if len(digests) != 4 {
		t.Errorf("4 statistics have %d digests", len(digests))
	}
}

// Impossible statistics are an error that names the layer, and leave no file.
func TestCollectFromRefuses(t *testing.T) {
	s := tiny(t, "llama-tiny")
	store := s.collect(t, t.TempDir(), hessian.Options{Key: "a"})
	const first = "model.layers.0.self_attn.q_proj.weight"
	for want, change := range map[string]func(*hessian.Given){
		`the inputs of "` + first + `" are not finite`:       func(g *hessian.Given) { g.Max = float32(math.Inf(1)) },
		`inputs of "` + first + `" are not finite: look`:     func(g *hessian.Given) { g.Min = float32(math.NaN()) },
		`the inputs of "` + first + `" reach a magnitude of`: func(g *hessian.Given) { g.Triangle[0] = float32(math.Inf(1)) },
		`"model.layers.0.self_attn.k_proj.weight"`:           func(g *hessian.Given) { g.Triangle = g.Triangle[1:] },
		`statistics of ["` + first:                           func(g *hessian.Given) { g.Tokens = 0 },
		`statistics of []: 1176 values, 48 inputs and 3`:     func(g *hessian.Given) { g.Layers = nil },
	} {
		dir := t.TempDir()
		e := &elsewhere{t: t, of: store, groups: s.groups(t), tokens: s.length(), most: 1000, change: change}
		_, err := hessian.CollectFrom(t.Context(), s.decoder, s.tokens, dir, hessian.Options{Key: "a"}, e.run)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %s", err, want)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: %s is left", want, filepath.Join(dir, left[0].Name()))
		}
	}
}
