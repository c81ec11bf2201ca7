package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

func number(v float64) *float64 { return &v }

// TestLowestSNR: the lowest known SNR counts.
func TestLowestSNR(t *testing.T) {
	if snr := (*Prediction)(nil).LowestSNR(); snr != nil {
		t.Errorf("of no prediction: %v", *snr)
	}
	for _, a := range []*float64{nil, number(30), number(10)} {
		for _, b := range []*float64{nil, number(20), number(40)} {
			for _, c := range []*float64{nil, number(5), number(25)} {
				got, want := (&Prediction{SNR: a, SampleSNR: b, InputSNR: c}).LowestSNR(), (*float64)(nil)
				for _, v := range []*float64{a, b, c} {
					if v != nil && (want == nil || *v < *want) {
						want = v
					}
				}
				if (got == nil) != (want == nil) || got != nil && *got != *want {
					t.Errorf("%v, %v, %v: %v, want %v", a, b, c, got, want)
				}
			}
		}
	}
}

// TestNothingLeft: only a plan of a quantised model without steps leaves nothing to do.
func TestNothingLeft(t *testing.T) {
	for copied := range 2 {
		for steps := range 2 {
			p := &Plan{Quantised: make([]quant.Copied, copied), Steps: make([]*Step, steps)}
			if got := p.NothingLeft(); got != (copied == 1 && steps == 0) {
				t.Errorf("%d copied tensors, %d steps: %v", copied, steps, got)
			}
		}
	}
	for want, s := range map[bool]Selection{true: {}, false: {Ignore: []string{"a"}}} {
		if s.Empty() != want || (Selection{Only: []string{"b"}}).Empty() {
			t.Errorf("%+v is empty: %v", s, !want)
		}
	}
}

// TestBestTrial: the best trial is the last one that was kept.
func TestBestTrial(t *testing.T) {
	for _, kept := range [][]bool{nil, {false}, {true}, {true, false}, {false, true, true, false}} {
		s, want := &Search{}, -1
		for i, k := range kept {
			s.Trials = append(s.Trials, Trial{Energy: float64(i), Kept: k})
			if k {
				want = i
			}
		}
		if best := s.Best(); (best == nil) != (want < 0) || best != nil && best.Energy != float64(want) {
			t.Errorf("%v: %+v, want trial %d", kept, best, want)
		}
	}
}

// TestManifestsReadBack: a manifest with any of its parts is read as it was written.
func TestManifestsReadBack(t *testing.T) {
	for parts := range 32 {
		has := func(bit int) bool { return parts>>bit&1 == 1 }
		f := Folder{}
		if has(0) {
			f.Keep = []string{"*.txt"}
		}
		if has(1) {
			f.BaseModel = "a/b"
		}
		m := NewManifest(&Plan{Version: Version, DropIn: has(2), Request: Request{Workload: cost.DefaultWorkload}, Steps: []*Step{}}, f)
		if m.DropIn != has(2) || m.Version != ManifestVersion || (m.Folder != nil) != (has(0) || has(1)) || !reflect.DeepEqual(m.Asked(), f) {
			t.Errorf("%d: %+v", parts, m)
		}
		m.Shards = []Shard{{"a", "b", "c"}, {"d", "e", "f"}}[:parts%3]
		if has(3) {
			m.Files = []File{{"x", 3, "y"}, {"z", 4, "w"}}
		}
		if has(4) {
			m.LeftOut, m.Previous = []weights.Leftover{{Path: "p"}}, []byte(`{"a": 1}`)
		}
		js, err := m.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodeManifest("lowtoggle.json", js)
		if err != nil {
			t.Fatalf("%s: %v", js, err)
		}
		twice, err := again.Encode()
		if err != nil || !bytes.Equal(js, twice) || bytes.Contains(js, []byte("left_out")) != has(4) || bytes.Contains(js, []byte(`"files"`)) != has(3) || bytes.Contains(js, []byte("previous")) != has(4) || len(again.Files) != len(m.Files) || len(again.Shards) != len(m.Shards) {
			t.Errorf("%s, again %s: %v", js, twice, err)
		}
		if _, err := DecodeManifest("x", bytes.Replace(js, []byte(`"manifest_version": 1`), []byte(`"manifest_version": 2`), 1)); err == nil || Unread(err) {
			t.Errorf("version 2: %v", err)
		}
	}
	for want, err := range map[bool]error{true: errors.New("input/output error"), false: fmt.Errorf("x: %w", fs.ErrNotExist)} {
		if Unread(err) != want || Unread(nil) {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

// TestPartsReadBack: a part of a plan is read as it was written. Wrong versions and steps are refused.
func TestPartsReadBack(t *testing.T) {
	for layers := range 3 {
		p := &Partial{Version: PartialVersion, Number: 2, Of: 3, Options: "o", Whole: []*Step{{Pass: "scale", Index: "i", Field: "exponents", Data: []int{1}}}, Notes: []string{"n"}}
		for i := range layers {
			p.Layers = append(p.Layers, Decision{Prediction{Tensor: fmt.Sprint("t", i), SNR: number(3)}, []*Step{{Pass: "round", Tensor: fmt.Sprint("t", i), Data: map[string]int{"zeroed": 2}}}})
		}
		js, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := DecodePartial("part", js)
		if err != nil {
			t.Fatalf("%s: %v", js, err)
		}
		twice, err := again.Encode()
		if err != nil || !bytes.Equal(js, twice) || len(again.Layers) != layers || again.Number != 2 || again.Of != 3 {
			t.Errorf("%s, again %s: %v", js, twice, err)
		}
		for from, to := range map[string]string{`"plan_part_version": 1`: `"plan_part_version": 2`, `"pass":"round"`: `"pass":""`, `"index": "i"`: `"index": ""`} {
			changed := strings.Replace(string(js), from, to, 1)
			if _, err := DecodePartial("part", []byte(changed)); changed != string(js) && (err == nil || !errors.Is(err, ErrInvalid)) {
				t.Errorf("%s: %v", to, err)
			}
		}
	}
	list := []*Step{{Pass: "a", Tensor: "x"}, {Pass: "b", Index: "i"}, {Pass: "c", Tensor: "x"}, {Pass: "d", Tensor: "y"}}
	if by := ByTensor(list); len(by["x"]) != 2 || by["x"][1] != list[2] || len(by["y"]) != 1 || by["y"][0] != list[3] {
		t.Errorf("%v", by)
	}
}

// TestManifestOfAModel: the manifest beside a model is read, and passed on as the previous one.
func TestManifestOfAModel(t *testing.T) {
	if _, err := ManifestOf(nil); !errors.Is(err, weights.ErrNoModel) {
		t.Error(err)
	}
	if _, err := Previous(nil); !errors.Is(err, weights.ErrNoModel) {
		t.Error(err)
	}
	dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", `{"num_hidden_layers": 1}`), synth.Options{})
	if js, err := Previous(testmodel.Open(t, dir)); js != nil || err != nil {
		t.Errorf("%s, %v", js, err)
	}
	if _, err := ManifestOf(testmodel.Open(t, dir)); !errors.Is(err, fs.ErrNotExist) || Unread(err) {
		t.Error(err)
	}
	js, err := NewManifest(&Plan{Version: Version, Request: Request{Workload: cost.DefaultWorkload}, Steps: []*Step{}}, Folder{BaseModel: "a/b"}).Encode()
	testmodel.OK(t, err)
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, ManifestName), js, 0o666))
	m := testmodel.Open(t, dir)
	man, err := ManifestOf(m)
	if err != nil || man.Asked().BaseModel != "a/b" {
		t.Errorf("%+v, %v", man, err)
	}
	if again, err := Previous(m); err != nil || !bytes.Equal(again, js) {
		t.Errorf("%s, %v", again, err)
	}
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, ManifestName), []byte("{"), 0o666))
	if _, err := Previous(testmodel.Open(t, dir)); err == nil || !strings.Contains(err.Error(), "is not JSON") {
		t.Error(err)
	}
}
