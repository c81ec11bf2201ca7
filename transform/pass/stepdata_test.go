package pass_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/lowtoggle/lowtoggle/internal/goldenfile"
	"github.com/lowtoggle/lowtoggle/internal/testmodel"
	"github.com/lowtoggle/lowtoggle/internal/testplan"
	"github.com/lowtoggle/lowtoggle/transform"
	"github.com/lowtoggle/lowtoggle/transform/plan"
	"github.com/lowtoggle/lowtoggle/transform/program"
	"github.com/lowtoggle/lowtoggle/weights"
)

// TestStepData: steps with every kind of data are taken or refused as recorded, and make the recorded values and descriptions.
func TestStepData(t *testing.T) {
	data := []string{`null`, `{}`, `[]`, `[0,1,2,3]`, `[3,1,0,2]`, `[0,1,2]`, `[0,1,2,3,4]`, `[0,1,2,4]`, `[0,0,1,2]`, `[-1,0,1,2]`, `[3]`, `[4]`, `[-1]`, `[0]`, `[1,1]`, `[2,1]`, `[1,2]`, `[0,3]`, `[0,-1]`, `[3,4]`,
		`{"damp":0}`, `{"damp":0.01}`, `{"damp":1}`, `{"damp":1.01}`, `{"damp":-0.5}`,
		`{"zeroed":0}`, `{"zeroed":1}`, `{"zeroed":7}`, `{"zeroed":8}`, `{"zeroed":-1}`, `{"zeroed":3,"truncate":true}`,
		`{"exponents":[0,-1,-2,-3]}`, `{"exponents":[0,-1,-2]}`, `{"exponents":[0,-1,-2,-3,-4]}`, `{"exponents":[1000,0,0,0]}`, `{"exponents":[1001,0,0,0]}`, `{"exponents":[-1000,0,0,0]}`, `{"exponents":[0,0,0,-1001]}`, `{"exponents":[5,5,-5,-5],"s":2}`, `{"s":2}`, `{"s":0}`, `{"s":-1}`,
		`{"block":[1,1],"threshold":0.25}`, `{"block":[4,2],"threshold":3}`, `{"block":[2,2],"threshold":1.2525,"ties":1}`, `{"block":[2,8],"threshold":6}`, `{"block":[0,1],"threshold":1}`, `{"block":[1,0],"threshold":1}`, `{"block":[3,1],"threshold":1}`, `{"block":[64,4096],"threshold":1}`, `{"block":[128,1],"threshold":1}`, `{"block":[1,5000],"threshold":1}`, `{"block":[1,1],"threshold":-1}`,
		`{"block":[1,1],"ties":-1}`, `{"runs":0.1}`, `{"runs":2}`, `{"runs":-1}`, `{"runs":0.1,"pattern":"2:4"}`, `{"pattern":"2:4"}`, `{"pattern":"1:4"}`, `{"pattern":""}`,
		`{"inputs":[0]}`, `{"inputs":[7]}`, `{"inputs":[8]}`, `{"outputs":[3]}`, `{"outputs":[4]}`, `{"outputs":[-1]}`, `{"outputs":[0,0]}`, `{"outputs":[3,1]}`, `{"outputs":[0,1,2,3]}`,
		`{"lambda":0,"rates":{"significant":[0,1,1,1,1,1,1,1,1]}}`, `{"lambda":0.3,"rates":{"significant":[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9]}}`, `{"lambda":0.3,"rates":{"significant":[0.1,0.2]}}`, `{"lambda":-1,"rates":{"significant":[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9]}}`,
		`{"lambda":0.3,"rates":{"significant":[0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9],"differ":0.5,"run":2}}`, `{"bits":0}`, `{"bits":3}`, `{"bits":24}`, `{"bits":-1}`, `{"add":1}`, `{"add":-2.5,"epilogue":true}`, `{"add":0}`, `{"add":1e300}`, `{"add":1e-300,"epilogue":true}`, `{"fill":1}`, `{"scale":"x"}`}
	x := testmodel.Matrix(weights.BF16, 8, []float32{0.3, -1.2, 2.7, 0.01, -0.6, 1.1, 0.4, -3.3, 0.9, 0.8, -0.7, 0.2, 0.5, -0.5, 0.6, 0.1, 1.5, 2.5, -3.5, 4.5, 0.05, 0.06, 0.07, 0, -1, 1, -2, 2, -4, 4, -8, 8})
	x.Name = "w"
	var b strings.Builder
	for _, row := range transform.Passes {
		p := row.Pass
		for _, js := range data {
			s := &plan.Step{Pass: p.Name, Tensor: "w", Data: json.RawMessage(js)}
			if p.Symmetry != nil {
				s.Tensor, s.Index = "", "i"
				var sym program.Symmetry
				if err := p.Symmetry(s, 4, &sym); err == nil {
					again := p.Symmetry(s, 4, &sym)
					fmt.Fprintf(&b, "%s %s: %v, twice %v, %s\n", p.Name, js, sym, again == nil, described(p.Describe, s))
				}
				continue
			}
			for outAxis := range 2 {
				made, err := testplan.Alone(t, x, outAxis).Program(t.Context(), s)
				if errors.Is(err, program.ErrNoHessians) {
					fmt.Fprintf(&b, "%s %s, outputs %d: needs tokens\n", p.Name, js, outAxis)
				}
				if err != nil {
					continue
				}
				result := "not prepared"
				if made.Prepare(t.Context(), 1) == nil {
					values := make([]byte, len(x.Data))
					made.Run(values, 0, 4)
					result = fmt.Sprintf("%.4x", sha256.Sum256(values))
				}
				fmt.Fprintf(&b, "%s %s, outputs %d: %s, %d extra tensors, units of %d rows, %s\n", p.Name, js, outAxis, result, len(made.Extras()), made.Unit, described(p.Describe, s))
			}
		}
	}
	goldenfile.Same(t, "testdata/stepdata.txt", []byte(b.String()))
}

func described(describe func(*plan.Step) string, s *plan.Step) string {
	if describe == nil {
		return "no description"
	}
	return describe(s)
}
