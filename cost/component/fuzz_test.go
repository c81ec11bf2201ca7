package component

import (
	"encoding/json"
	"testing"
)

// FuzzComponents: a components file is an error, or can be written and read again.
func FuzzComponents(f *testing.F) {
	m, err := builtIn("h200")
	if err != nil || m == nil {
		f.Fatal(m, err)
	}
	few := *m
	few.Readings = few.Readings[:2]
	good, err := json.Marshal(few)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"components_version": 2, "facts": {}, "readings": [null]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decode(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decode(readable(again)); err != nil {
			t.Errorf("%v: %s", err, again)
		}
	})
}
