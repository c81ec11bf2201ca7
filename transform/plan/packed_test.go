package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/transform/pass"
	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// long returns a plan of many layers. Its plain form is longer than 4 MiB.
func long(t *testing.T) *plan.Plan {
	t.Helper()
	p, err := plan.Decode(golden(t))
	testmodel.OK(t, err)
	p.Steps = nil
	for i := range 40_000 {
		name := fmt.Sprintf("model.layers.%d.mlp.experts.%d.down_proj.weight", i/256, i%256)
		p.Steps = append(p.Steps, &plan.Step{Pass: "round", Tensor: name, Data: pass.Bits{Zeroed: 1}})
		p.Predictions = append(p.Predictions, plan.Prediction{Tensor: name, Linear: true})
	}
	p.Steps = append(p.Steps, &plan.Step{Pass: "round", Tensor: "lm_head.weight", Data: pass.Bits{Zeroed: 2}})
	return p
}

// TestPacked: a packed plan is short, its summary describes the steps, and reading gives the written plan.
func TestPacked(t *testing.T) {
	p := long(t)
	plain, err := p.Plain()
	testmodel.OK(t, err)
	js := encoded(t, p)
	if len(js) > len(plain)/10 {
		t.Errorf("%d bytes are packed into %d", len(plain), len(js))
	}
	var h plan.Packed
	testmodel.OK(t, json.Unmarshal(js, &h))
	want := []plan.Kind{
		{Pass: "round", On: "model.layers.*.mlp.experts.*.down_proj.weight", Steps: 40_000, Data: json.RawMessage(`{"zeroed":1}`)},
		{Pass: "round", On: "lm_head.weight", Steps: 1, Data: json.RawMessage(`{"zeroed":2}`)},
	}
	for i := range h.Kinds {
		var b bytes.Buffer
		testmodel.OK(t, json.Compact(&b, h.Kinds[i].Data))
		h.Kinds[i].Data = b.Bytes()
	}
	if diff := cmp.Diff(want, h.Kinds); diff != "" {
		t.Errorf("(-want +have)\n%s", diff)
	}
	for name, text := range map[string][]byte{"packed": js, "plain": plain} {
		again, err := plan.Decode(text)
		testmodel.OK(t, err)
		if got, err := again.Plain(); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: reading gives another plan: %v", name, err)
		}
	}
}

// TestPackedRefuses: a damaged packed plan, or an edited summary, is an error.
func TestPackedRefuses(t *testing.T) {
	js := string(encoded(t, long(t)))
	var h plan.Packed
	testmodel.OK(t, json.Unmarshal([]byte(js), &h))
	cut := h
	cut.Gzip = h.Gzip[:len(h.Gzip)/2]
	other := h
	other.Gzip = append([]byte{}, h.Gzip...)
	other.SHA256 = strings.Repeat("0", 64)
	empty := h
	empty.Gzip = nil
	huge := h
	huge.Bytes = 1 << 50
	for name, c := range map[string]struct {
		text any
		want string
	}{
		"cut":      {cut, "unpacking"},
		"empty":    {empty, "unpacking"},
		"huge":     {huge, "at most"},
		"checksum": {other, "copy the file again"},
		"edited":   {strings.Replace(js, `"zeroed": 2`, `"zeroed": 3`, 1), "disagree"},
		"drop_in":  {strings.Replace(js, `"drop_in": true`, `"drop_in": false`, 1), "disagree"},
		"unknown":  {strings.Replace(js, `"drop_in": true`, `"drop_in": true, "more": 1`, 1), "more"},
	} {
		text, isText := c.text.(string)
		if !isText {
			b, err := json.Marshal(c.text)
			testmodel.OK(t, err)
			text = string(b)
		}
		if _, err := plan.Decode([]byte(text)); !errors.Is(err, plan.ErrInvalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, c.want)
		}
	}
}

// TestManifestHoldsPackedPlan: the manifest of a long plan is short too.
func TestManifestHoldsPackedPlan(t *testing.T) {
	p := long(t)
	man := plan.Manifest{Version: plan.ManifestVersion, DropIn: true, Shards: []plan.Shard{{File: "a", Source: "00", Output: "00"}}, Plan: p}
	js, err := man.Encode()
	testmodel.OK(t, err)
	if len(js) > 1<<20 {
		t.Errorf("the manifest has %d bytes", len(js))
	}
	dir := t.TempDir()
	testmodel.OK(t, os.WriteFile(filepath.Join(dir, plan.ManifestName), js, 0o666))
	again, err := plan.ReadManifest(dir)
	testmodel.OK(t, err)
	a, err := p.Plain()
	testmodel.OK(t, err)
	b, err := again.Plan.Plain()
	testmodel.OK(t, err)
	if !bytes.Equal(a, b) {
		t.Error("the manifest has another plan")
	}
}
