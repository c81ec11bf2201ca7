package card_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lowtoggle/lowtoggle/cli"
	"github.com/lowtoggle/lowtoggle/cli/card"
	"github.com/lowtoggle/lowtoggle/cli/exit"
	"github.com/lowtoggle/lowtoggle/gemm/power"
)

// faultWords are parts of messages about a persistent fault. Any of them is correct.
var faultWords = map[power.SimFaultKind][]string{
	power.FaultCounterStops:      {"energy counter does not change"},
	power.FaultCounterBack:       {"energy counter fell from"},
	power.FaultCounterRepeats:    {"energy counter fell from"},
	power.FaultCounterAbsurd:     {"the energy counter gives an im"},
	power.FaultPowerAbsurd:       {"power sensor"},
	power.FaultTemperatureAbsurd: {"3000"},
	power.FaultClockAbsurd:       {"6e+04", "does not report its clock"},
	power.FaultLost:              {"the driver has lost the card"},
	power.FaultHeat:              {"because of its temperature", "for heat"},
	power.FaultProcess:           {"another process"},
	power.FaultLimit:             {"power limit"},
}

// sideSensors are faults of sensors that most commands do not need for their figures.
var sideSensors = map[power.SimFaultKind]bool{power.FaultPowerAbsurd: true, power.FaultTemperatureAbsurd: true, power.FaultClockAbsurd: true}

// TestFaults: every command that measures names every persistent fault that begins in the middle. The command ends
// with an error, and its JSON says that the figures are invalid. If the faulty sensor is not needed for the figures,
// a warning is enough.
func TestFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("55 measurements without shared data: slow with the race detector")
	}
	dir := t.TempDir()
	model, out := filepath.Join(dir, "m"), filepath.Join(dir, "out")
	run := func(args ...string) (status int, stdout, stderr string) {
		var o, e bytes.Buffer
		status = cli.Main(t.Context(), append([]string{"lowtoggle"}, append(args, "--quiet")...), &o, &e)
		return status, o.String(), strings.Join(strings.Fields(e.String()), " ")
	}
	for _, args := range [][]string{{"synth", "llama-tiny", model}, {"convert", model, out, "--passes", "grid=4"}} {
		if status, _, stderr := run(args...); status != 0 {
			t.Fatal(args, stderr)
		}
	}
	shape := []string{"--device", "simulated", "--shape", "64x64x64"}
	for name, args := range map[string][]string{
		"measure":   append([]string{"measure", "--against", "zeros", "--time", "30s", "--json"}, shape...),
		"verify":    {"verify", model, out, "--gpu", "--total", "--device", "simulated", "--time", "30s", "--json"},
		"profile":   append([]string{"profile", "--length", "100ms", "--runs", "60", "--json"}, shape...),
		"sweep":     append([]string{"sweep", "--against", "zeros", "--change-settings", "--caps", "400,500", "--time", "12s", "--json"}, shape...),
		"calibrate": {"calibrate", "--components", "--device", "simulated", "--json"},
	} {
		for _, kind := range power.SimFaultKinds {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				defer card.SetFaults(power.SimFault{Kind: kind, From: 22 * time.Second})()
				args := args
				if name == "calibrate" {
					args = append([]string{args[0], filepath.Join(t.TempDir(), "card")}, args[1:]...)
				}
				status, stdout, stderr := run(args...)
				named := false
				for _, words := range faultWords[kind] {
					named = named || strings.Contains(stderr+strings.Join(strings.Fields(stdout), " "), words)
				}
				if name == "calibrate" && (kind == power.FaultPowerAbsurd || kind == power.FaultTemperatureAbsurd) && status != exit.Failed {
					return // the fit leaves out such readings and needs no others
				}
				if !named {
					t.Errorf("status %d, and the fault is not named: %s\n%.300s", status, stderr, stdout)
				}
				if sideSensors[kind] && status != exit.Failed {
					return
				}
				if status != exit.Failed {
					t.Errorf("status %d, want %d: %s", status, exit.Failed, stderr)
				}
				var document struct {
					Valid   *bool  `json:"valid"`
					Stopped string `json:"stopped"`
				}
				if stdout != "" {
					if err := json.Unmarshal([]byte(stdout), &document); err != nil {
						t.Fatal(err)
					}
					if document.Stopped != "" && document.Stopped != power.StoppedFailed || document.Valid != nil && *document.Valid {
						t.Errorf("stopped %q, want %q or none; valid %v, want not true", document.Stopped, power.StoppedFailed, document.Valid != nil && *document.Valid)
					}
				}
			})
		}
	}
}
