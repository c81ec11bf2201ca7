package reference

import (
	"math"
	"reflect"
	"testing"
)

func TestPastPadding(t *testing.T) {
	if got := pastPadding([]int32{1, 5, 1, 7, 0}, 1); !reflect.DeepEqual(got, []int{1, 2, 1, 3, 4}) {
		t.Errorf("positions %v", got)
	}
}

func TestPatches(t *testing.T) {
	p := &model{fields: map[string]any{"image_size": 4.0, "patch_size": 2.0, "num_channels": 2.0}}
	var image []float64
	for i := range 32 {
		image = append(image, float64(i))
	}
	want := [][]float64{
		{0, 1, 4, 5, 16, 17, 20, 21}, {2, 3, 6, 7, 18, 19, 22, 23},
		{8, 9, 12, 13, 24, 25, 28, 29}, {10, 11, 14, 15, 26, 27, 30, 31},
	}
	if got := p.patches(image); !reflect.DeepEqual(got, want) {
		t.Errorf("patches %v", got)
	}
}

func TestConvolution(t *testing.T) {
	x := [][]float64{{1, -1}, {2, -2}, {3, -3}, {4, -4}}
	want := [][]float64{{0, 1, 2, 0, -1, -2}, {2, 3, 4, -2, -3, -4}}
	if got := windows(x, 2); !reflect.DeepEqual(got, want) {
		t.Errorf("windows %v", got)
	}
	if got := windows(x, 1); len(got) != 4 || !reflect.DeepEqual(got[3], []float64{3, 4, 0, -3, -4, 0}) {
		t.Errorf("windows %v", got)
	}
}

// TestMultiHead: queries of 0 give all visible positions the same weight, and a head reads only its own channels.
func TestMultiHead(t *testing.T) {
	zero := [][]float64{{0, 0}, {0, 0}}
	v := [][]float64{{1, 10}, {3, 30}}
	if got := multiHead(zero, zero, v, 2, backwards); !reflect.DeepEqual(got, [][]float64{{1, 10}, {2, 20}}) {
		t.Errorf("backwards: %v", got)
	}
	if got := multiHead(zero, zero, v, 2, around); !reflect.DeepEqual(got, [][]float64{{2, 20}, {2, 20}}) {
		t.Errorf("around: %v", got)
	}
	third := func(head, _, u int) float64 { return float64(head*u) * math.Log(3) }
	if got := multiHead(zero, zero, v, 2, third); math.Abs(got[0][0]-2) > 1e-12 || math.Abs(got[0][1]-25) > 1e-12 {
		t.Errorf("a bias of log 3 on the second head's second position: %v", got)
	}
}

// TestWhoSeesWhom: the last token affects the first position's outputs in an encoder, but not in a decoder.
func TestWhoSeesWhom(t *testing.T) {
	for name, sees := range map[string]bool{"bert-tiny": true, "roberta-tiny": true, "opt-tiny": false, "bloom-tiny": false, "whisper-tiny": false} {
		m := changed(t, name, nil)
		n, err := Values(m)
		if err != nil {
			t.Fatal(err)
		}
		var first [][]float64
		for _, last := range []int32{4, 9} {
			rows, err := Run(m, Inputs{Tokens: []int32{3, 5, last}, Values: make([]float64, n)})
			if err != nil {
				t.Fatal(err)
			}
			first = append(first, rows[0])
		}
		if changed := !reflect.DeepEqual(first[0], first[1]); changed != sees {
			t.Errorf("%s: the last token changes the first position: %v", name, changed)
		}
	}
}

// TestValues: a vision or audio model reports the number of values that it needs, and other numbers are errors.
func TestValues(t *testing.T) {
	for name, want := range map[string]int{"vit-tiny": 3 * 12 * 12, "whisper-tiny": 8 * 20, "bert-tiny": 0} {
		m := changed(t, name, nil)
		if n, err := Values(m); n != want || err != nil {
			t.Errorf("%s: %d values, %v", name, n, err)
		}
		if _, err := Run(m, Inputs{Tokens: []int32{3}, Values: make([]float64, want+1)}); (err != nil) != (want > 0) {
			t.Errorf("%s: given one more: %v", name, err)
		}
	}
}
