package serve

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzPrompts: a file of prompts is refused, or every prompt is text or token ids, and is written as it was read.
func FuzzPrompts(f *testing.F) {
	f.Add([]byte("What is power?\r\n\n\ufeffZwei.\n"))
	f.Add([]byte(`{"prompt": "a"}` + "\n" + `{"prompt": [1, 2, 3], "id": 7}` + "\n"))
	f.Add([]byte("{\"prompt\": null}\n\xff\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ReadPrompts(bytes.NewReader(data))
		if err != nil {
			if !utf8.ValidString(err.Error()) {
				t.Errorf("error %q", err)
			}
			return
		}
		if len(list) == 0 {
			t.Error("no prompts, and no error")
		}
		for _, p := range list {
			if (p.Text == "") == (p.Tokens == nil) || !utf8.ValidString(p.Text) {
				t.Errorf("prompt %+v", p)
			}
			js, err := json.Marshal(map[string]Prompt{"prompt": p})
			if err != nil {
				t.Fatal(err)
			}
			again, err := ReadPrompts(strings.NewReader(string(js)))
			if err != nil || len(again) != 1 || again[0].Text != p.Text || len(again[0].Tokens) != len(p.Tokens) {
				t.Errorf("%s is read as %+v (%v)", js, again, err)
			}
		}
	})
}
