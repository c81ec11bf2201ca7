package profile

import (
	"encoding/json"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/profile/stitch"
)

// FuzzResult: a file of readings is refused, or its profiles' readings are in order. They are not stitched here: that takes a
// second.
func FuzzResult(f *testing.F) {
	good, err := json.Marshal(sound())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"products": [{}], "profiles": [{"legs": [{"executions": 1}], "runs": {"1": {"done": [0, 1], "at": ["0 s", "1 s"]}}, "readings": [null]}]}`))
	f.Fuzz(func(t *testing.T, js []byte) {
		var r Result
		if json.Unmarshal(js, &r) != nil {
			return
		}
		for i := range r.Profiles {
			p := &r.Profiles[i]
			if p.load(len(r.Products)) != nil {
				continue
			}
			for _, x := range p.Readings {
				if _, ok := p.Timelines[x.Run]; !ok || !(x.Watts >= 0) || x.Sensor == stitch.Counter && x.Since > x.At || x.Sensor != stitch.Counter && x.Since != 0 {
					t.Errorf("%+v was read", x)
				}
			}
		}
	})
}
