package plan

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// TestFingerprintOfEveryTensor: a fingerprint is the same for a model in any number of shards, and another one after a change of the
// first or last bytes, the name or the shape of any tensor.
func TestFingerprintOfEveryTensor(t *testing.T) {
	config := testmodel.Config(t, "llama-tiny", `{"num_hidden_layers": 16}`) // more tensors than are read in advance
	prints := map[string]bool{}
	for _, shard := range []int64{0, 20_000, 60_000} {
		m := testmodel.Open(t, testmodel.Folder(t, config, synth.Options{Seed: 2, ShardBytes: shard}))
		fp, err := Fingerprint(m)
		testmodel.OK(t, err)
		if prints[fp.SHA256] = true; fp.Tensors != len(m.Infos()) || fp.Tensors <= sampledAhead {
			t.Errorf("%d tensors of %d", fp.Tensors, len(m.Infos()))
		}
		var size int64
		for _, f := range m.Files() {
			for _, info := range f.Tensors {
				size += info.Size()
			}
		}
		if fp.Bytes != size {
			t.Errorf("%d bytes of %d", fp.Bytes, size)
		}
	}
	if len(prints) != 1 {
		t.Errorf("%d fingerprints of one model in different shards", len(prints))
	}
	dir := testmodel.Folder(t, testmodel.Config(t, "llama-tiny", `{"num_hidden_layers": 1}`), synth.Options{Seed: 2})
	of := func() string {
		m := testmodel.Open(t, dir)
		fp, err := Fingerprint(m)
		testmodel.OK(t, err)
		if err := (&Plan{Model: fp}).CheckModel(m); err != nil {
			t.Error(err)
		}
		other := fp
		other.SHA256 = strings.Repeat("0", 64)
		if err := (&Plan{Model: other}).CheckModel(m); !errors.Is(err, ErrInvalid) {
			t.Errorf("another model: %v", err)
		}
		return fp.SHA256
	}
	was := of()
	for _, info := range testmodel.Open(t, dir).Infos() {
		for _, last := range []bool{false, true} {
			change := func(i weights.Info, data []byte) {
				if i.Name == info.Name {
					at := 0
					if last {
						at = len(data) - 1
					}
					data[at] ^= 1
				}
			}
			testmodel.Edit(t, dir, change)
			if of() == was {
				t.Errorf("%s: a change of its bytes is not seen (last: %v)", info.Name, last)
			}
			testmodel.Edit(t, dir, change)
		}
	}
	if of() != was {
		t.Error("the fingerprint of the first model is another one")
	}
	if _, err := Fingerprint(nil); err == nil {
		t.Error("a fingerprint of no model")
	}
}

// TestLinesOfAPlan: a plan's JSON has one line for each step, prediction and note, and no list that is empty but the steps. A step that
// cannot be encoded is an error.
func TestLinesOfAPlan(t *testing.T) {
	for _, n := range []int{0, 1, 2, linesAtOnce, linesAtOnce + 1} {
		p := &Plan{Version: Version}
		p.Request.Workload.Prefill = 1
		for i := range n {
			p.Steps = append(p.Steps, &Step{Pass: "p", Tensor: fmt.Sprint(i), Data: i})
		}
		for range n % 3 {
			p.Predictions, p.Notes = append(p.Predictions, Prediction{Tensor: "a"}), append(p.Notes, "note")
		}
		js, err := p.Plain()
		testmodel.OK(t, err)
		text := string(js)
		if got := strings.Count(text, "\n    {\"pass\":\"p\",\"tensor\":"); got != n || strings.Count(text, "\n    \"note\"") != n%3 || strings.Count(text, "\n    {\"tensor\":\"a\"") != n%3 {
			t.Errorf("%d steps: %d lines of steps in %.400s", n, got, text)
		}
		if strings.Contains(text, `"notes"`) != (n%3 > 0) || strings.Contains(text, `"outlook"`) != (n%3 > 0) || !strings.Contains(text, `"steps": [`) {
			t.Errorf("%d steps: lists %.400s", n, text)
		}
		for i := range n {
			if at := strings.Index(text, fmt.Sprintf(`{"pass":"p","tensor":"%d","p":%d}`, i, i)); at < 0 {
				t.Fatalf("step %d of %d is missing", i, n)
			}
		}
		if n == 0 {
			continue
		}
		p.Steps[n-1].Data = func() {}
		if _, err := p.Plain(); err == nil {
			t.Errorf("step %d of %d cannot be encoded, without an error", n-1, n)
		}
	}
}

// TestLengthOfAPlan: a plan of more than 4 MiB is packed, and a smaller one is not. Both are read again.
func TestLengthOfAPlan(t *testing.T) {
	for _, more := range []int{0, 1} {
		p := &Plan{Version: Version, Notes: []string{""}, Steps: []*Step{{Pass: "p", Tensor: "t", Data: 1}}}
		p.Request.Workload.Prefill = 1
		js, err := p.Plain()
		testmodel.OK(t, err)
		p.Notes[0] = strings.Repeat("n", plainBytes-len(js)+more)
		plain, err := p.Plain()
		testmodel.OK(t, err)
		js, err = p.Encode()
		testmodel.OK(t, err)
		if packed := !bytes.Equal(js, plain); len(plain) != plainBytes+more || packed != (more > 0) {
			t.Errorf("a plan of %d bytes is packed: %v", len(plain), packed)
		}
		again, err := Decode(js)
		testmodel.OK(t, err)
		if again.Notes[0] != p.Notes[0] {
			t.Error("another note")
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.json")); err == nil {
		t.Error("a missing plan is read")
	}
}
