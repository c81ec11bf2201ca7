package transform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/gemm/hessian"
	"github.com/lowtoggle/lowtoggle/internal/lock"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/apply"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/search"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/tokens"
)

// sharedSearch is a search for a budget of loss. Each call opens the tokens anew, like another process.
type sharedSearch struct {
	m      *weights.Model
	file   *tokens.File
	passes string
}

func (s sharedSearch) options(t *testing.T, dir string) Options {
	t.Helper()
	tok, err := NewTokens(s.m, s.file, nil, nil, 0)
	testmodel.OK(t, err)
	tok.Dir, tok.Keep = dir, true
	passes, err := ParsePasses(s.passes)
	testmodel.OK(t, err)
	most := 0.02
	return Options{Passes: passes, Budget: pass.Budget{MaxLoss: &most}, Tokens: tok, Cost: testmodel.TogglesCost{}, Workload: cost.Workload{Prefill: 1}}
}

func (s sharedSearch) plan(t *testing.T, o Options) ([]byte, error) {
	t.Helper()
	p, err := Plan(t.Context(), s.m, o)
	if err != nil {
		return nil, err
	}
	return p.Plain()
}

func shortSearch(t *testing.T) sharedSearch {
	m, file := demoModel(t)
	for i := range file.Parts {
		p := &file.Parts[i]
		p.N, p.T = 4, 24
		p.Sequences = p.Sequences[:p.N]
		for k := range p.Sequences {
			p.Sequences[k] = p.Sequences[k][:p.T]
		}
	}
	return sharedSearch{m, file, "round"}
}

// TestSearchInParts: the plan of a search in parts has the bytes of a search in one process. This holds for any
// number of parts, in any order, interrupted and repeated, and running at the same time.
func TestSearchInParts(t *testing.T) {
	s := shortSearch(t)
	all := 0
	testmodel.EachLinear(t, s.m, func(weights.Tensor, int) { all++ })
	want, err := s.plan(t, s.options(t, t.TempDir()))
	testmodel.OK(t, err)
	merge := func(t *testing.T, dir string) {
		t.Helper()
		o := s.options(t, dir)
		o.Search.Measured = true
		have, err := s.plan(t, o)
		testmodel.OK(t, err)
		if !bytes.Equal(have, want) {
			t.Errorf("the plan differs from the plan of one process:\n%s\nwant\n%s", have, want)
		}
	}
	for _, of := range []int{1, 3, 7} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			dir, layers := filepath.Join(t.TempDir(), "search"), 0
			for n := of; n >= 1; n-- {
				part := apply.Part{Number: n, Of: of}
				for _, stage := range []string{"curves", "sensitivities"} {
					ctx, cancel := context.WithCancel(t.Context())
					o := s.options(t, dir)
					o.Progress = func(e Event) {
						if e.Stage == stage && e.Done > e.Total/2 {
							cancel()
						}
					}
					if _, err := SearchPart(ctx, s.m, o, part); !errors.Is(err, apply.ErrTemporary) {
						t.Fatalf("interrupted: error %v", err)
					}
					cancel()
				}
				o := s.options(t, dir)
				o.Search.Measured = true
				wanted := regexp.MustCompile(fmt.Sprintf(`^(1 of %d layers is|\d+ of %[1]d layers are) not measured`, all))
				if _, err := s.plan(t, o); !errors.Is(err, search.ErrUnmeasured) || !wanted.MatchString(err.Error()) {
					t.Errorf("merged before part %v was measured: error %v", part, err)
				}
				for again := range 2 {
					measured, err := SearchPart(t.Context(), s.m, s.options(t, dir), part)
					testmodel.OK(t, err)
					layers += measured * (1 - again)
				}
			}
			if layers != all {
				t.Errorf("the parts have %d layers, not %d", layers, all)
			}
			merge(t, dir)
		})
	}
	t.Run("at once", func(t *testing.T) {
		dir := t.TempDir()
		var parts errgroup.Group
		for n := range 3 {
			o := s.options(t, dir)
			parts.Go(func() error {
				_, err := SearchPart(t.Context(), s.m, o, apply.Part{Number: n + 1, Of: 3})
				return err
			})
		}
		testmodel.OK(t, parts.Wait())
		merge(t, dir)
		left, err := filepath.Glob(filepath.Join(dir, "*lock"))
		testmodel.OK(t, err)
		if len(left) > 0 {
			t.Errorf("locks are left: %v", left)
		}
	})
}

// TestSearchPartRefuses: parts of another search, and a part that another process is measuring, are errors.
func TestSearchPartRefuses(t *testing.T) {
	s, dir := shortSearch(t), t.TempDir()
	one := apply.Part{Number: 1, Of: 7}
	run := func(s sharedSearch, change func(*Options)) error {
		o := s.options(t, dir)
		if change != nil {
			change(&o)
		}
		_, err := SearchPart(t.Context(), s.m, o, one)
		return err
	}
	testmodel.OK(t, run(s, nil))
	other := *s.file
	other.Parts = slices.Clone(other.Parts)
	for i := range other.Parts {
		p := &other.Parts[i]
		p.Sequences = slices.Clone(p.Sequences)
		slices.Reverse(p.Sequences)
	}
	for name, c := range map[string]struct {
		s      sharedSearch
		change func(*Options)
		want   error
	}{
		"passes":  {sharedSearch{s.m, s.file, "grid"}, nil, search.ErrOther},
		"version": {s, func(o *Options) { o.Version = "another" }, search.ErrOther},
		"tokens":  {sharedSearch{s.m, &other, s.passes}, nil, hessian.ErrOther},
	} {
		if err := run(c.s, c.change); !errors.Is(err, c.want) || errors.Is(err, apply.ErrTemporary) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	testmodel.OK(t, run(s, func(o *Options) { most := 0.5; o.Budget.MaxLoss = &most })) // budgets share measurements
	for name, change := range map[string]func(*Options){
		"no budget": func(o *Options) { o.Budget.MaxLoss = nil },
		"no tokens": func(o *Options) { o.Tokens = nil },
		"no folder": func(o *Options) { o.Tokens.Dir = "" },
	} {
		if err := run(s, change); err == nil || errors.Is(err, apply.ErrTemporary) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	held, err := lock.Acquire(filepath.Join(dir, "part-00001-of-00007.lock"))
	testmodel.OK(t, err)
	if held == nil {
		t.Skip("no locks here")
	}
	if err := run(s, nil); !errors.Is(err, apply.ErrTemporary) || !strings.Contains(err.Error(), "part 1/7: another process is measuring this part") {
		t.Errorf("measured twice at once: error %v", err)
	}
	testmodel.OK(t, errors.Join(held.Close(), os.RemoveAll(filepath.Join(dir, "fit"))))
	testmodel.OK(t, run(s, nil)) // missing statistics are collected again
}
