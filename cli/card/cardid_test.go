package card

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm"
	"github.com/lowtoggle/lowtoggle/gemm/measure"
	"github.com/lowtoggle/lowtoggle/gemm/power"
	"github.com/lowtoggle/lowtoggle/gemm/profile"
	"github.com/lowtoggle/lowtoggle/gemm/serve"
	"github.com/lowtoggle/lowtoggle/gemm/sweep"
)

// TestReportsNameCards: the text of every measurement names the card by its id.
func TestReportsNameCards(t *testing.T) {
	info := power.Info{Name: "NVIDIA H200", UUID: "GPU-1"}
	run := &power.Result{Header: power.Header{GPU: info.Name}, Card: info}
	product := profile.Product{Problem: &gemm.Problem{M: 16, N: 16, K: 16}}
	for name, print := range map[string]func(w io.Writer){
		"measure": func(w io.Writer) { measureReport{Result: &measure.Result{Result: run}}.print(w) },
		"bench":   func(w io.Writer) { measureReport{Result: &measure.Result{Result: run}}.bench(w) },
		"serve": func(w io.Writer) {
			serveReport{&serve.Result{Header: run.Header, Cards: []power.Info{info}}}.print(w)
		},
		"verify": func(w io.Writer) {
			e := &measure.ModelEnergy{GPU: info.Name, CardID: info.ID(), Phases: []measure.Phase{{Phase: "prefill", Total: &measure.Row{}}}}
			printModelEnergy(w, measure.CardEnergy{ModelEnergy: e}, "")
		},
		"whole": func(w io.Writer) { PrintWhole(w, &measure.WholeReport{GPU: info.Name, CardID: info.ID()}) },
		"sweep": func(w io.Writer) {
			io.WriteString(w, sweepTitle(&sweep.Result{GPU: info.Name, CardID: info.ID()}))
		},
		"profile": func(w io.Writer) {
			io.WriteString(w, profileReport{Result: &profile.Result{GPU: info.Name, Card: info, Products: []profile.Product{product}}}.title())
		},
	} {
		var text bytes.Buffer
		print(&text)
		if !strings.Contains(text.String(), "NVIDIA H200 ("+info.ID()+")") {
			t.Errorf("%s does not name the card %s:\n%s", name, info.ID(), text.String())
		}
	}
	if got := cardLabel("simulated card", ""); got != "simulated card" {
		t.Errorf("a card without an id is %q", got)
	}
}
