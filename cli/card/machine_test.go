package card

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/cli/exit"
)

func TestParseDevices(t *testing.T) {
	for text, want := range map[string][]device{
		"0":                      {{"0", 0, ""}},
		"07":                     {{"7", 7, ""}},
		"0,1":                    {{"0", 0, ""}, {"1", 1, ""}},
		"3, 0":                   {{"3", 3, ""}, {"0", 0, ""}},
		"simulated":              {{"simulated", -1, ""}},
		"simulated,simulated":    {{"simulated", -1, ""}, {"simulated", -1, ""}},
		"simulated:a,simulated:": nil,
		"simulated:a/b":          {{"simulated:a/b", -1, "a/b"}},
		"":                       nil, ",": nil, "0,": nil, "0,first": nil, "0;1": nil, "-1": nil, "0,-1": nil,
		"0,0": nil, "1,0,01": nil, "simulated:a,simulated:a": nil,
	} {
		have, err := parseDevices(text)
		same := len(have) == len(want)
		for i := range want {
			same = same && have[i] == want[i]
		}
		if !same || (err == nil) != (want != nil) || err != nil && exit.Status(err) != exit.WrongUsage {
			t.Errorf("%q is %v (%v)", text, have, err)
		}
	}
	for text, want := range map[string]string{"0,0": "--device 0,0: 0 is named twice", "simulated:a,simulated:a": "simulated:a is named twice", "0,x": "--device 0,x: give a number"} {
		if _, err := parseDevices(text); !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestOneCard: a command for one card rejects a list of cards before it looks for any card.
func TestOneCard(t *testing.T) {
	m, err := openMachine("0,1", 0)
	if m != nil || exit.Status(err) != exit.WrongUsage || !strings.Contains(err.Error(), "takes one card") {
		t.Errorf("%v, %v", m, err)
	}
}

func TestOpenMachines(t *testing.T) {
	if m, err := openMachines("simulated,1048576", 0); m != nil || exit.Status(err) != exit.NoGPU || !strings.HasPrefix(err.Error(), "card 1048576: ") {
		t.Errorf("%v, %v", m, err)
	}
	if m, err := openMachines("1048576", 0); m != nil || exit.Status(err) != exit.NoGPU || strings.Contains(err.Error(), "card 1048576") {
		t.Errorf("%v, %v", m, err)
	}
	m, err := openMachines("simulated,simulated", 0)
	if err != nil || len(m) != 2 || m[0].Name != "simulated 1" || m[1].Name != "simulated 2" {
		t.Fatalf("%v, %v", m, err)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	// A state that cannot be read is an error of this card.
	file := filepath.Join(t.TempDir(), "state")
	if err := os.WriteFile(file, []byte("?"), 0o666); err != nil {
		t.Fatal(err)
	}
	if m, err := openMachines("simulated,simulated:"+file, 0); m != nil || err == nil || !strings.HasPrefix(err.Error(), "simulated 2: ") {
		t.Errorf("%v, %v", m, err)
	}
}
