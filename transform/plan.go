package transform

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/weights"
)

// PlanVersion is the version of the plan's format that this package reads and writes.
const PlanVersion = 1

// Plan is everything that is done to a model, as data. Applied to the model that it was made for
// it gives the same bytes anywhere.
type Plan struct {
	Version int    `json:"plan_version"`
	Tool    string `json:"lowtoggle"`
	// DropIn is false where a runtime must be changed to use the result.
	DropIn bool  `json:"drop_in"`
	Model  Model `json:"model"`
	// Request is what was asked for.
	Request Request `json:"request"`
	// Found is what the search for the plan found, where there was one.
	Found *Found `json:"found,omitempty"`
	// Steps are in the order of the table of passes.
	Steps []*Step `json:"steps"`
	// Outlook is what the planner found for each tensor that it treated or passed over.
	Outlook []Outlook `json:"outlook,omitempty"`
	// Notes say in words what was left alone and why.
	Notes []string `json:"notes,omitempty"`
}

// Model tells the model that a plan was made for from every other.
type Model struct {
	Family  string `json:"family,omitempty"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
	// SHA256 covers name, type and shape of every tensor, and samples of its data.
	SHA256 string `json:"sha256"`
}

// Request is what a plan was asked to do.
type Request struct {
	Passes   []string      `json:"passes"`
	MinSNR   *float64      `json:"min_snr_db,omitempty"`
	MaxLoss  *float64      `json:"max_loss_nats,omitempty"`
	Workload cost.Workload `json:"workload"`
	Role     cost.Role     `json:"role"`
	// Inputs is the key of the tokens' inputs by which errors were weighed: carrying the plan out
	// takes the same tokens. Absent where there were none.
	Inputs string `json:"inputs,omitempty"`
	Seed   uint64 `json:"seed"`
}

// Outlook is what is expected of one tensor.
type Outlook struct {
	Tensor string `json:"tensor"`
	// Linear tells the tensors whose products cost energy.
	Linear bool `json:"linear"`
	// SNR is the output's signal-to-noise ratio in decibels under the plan, exact; absent where
	// nothing is lost or where it was not computed because no budget was given.
	SNR *float64 `json:"snr_db,omitempty"`
	// Before and After are energies relative to random data of the same scale, predicted from
	// sampled rows.
	Before *cost.Estimate `json:"before,omitempty"`
	After  *cost.Estimate `json:"after,omitempty"`
	// Missed says which part of the request did not fit the budget.
	Missed string `json:"missed,omitempty"`
	// InputSNR is the output's signal-to-noise ratio in decibels on the inputs that the layer gets;
	// absent where they are not known.
	InputSNR *float64 `json:"input_snr_db,omitempty"`
	// NonFinite counts NaN and infinite values; absent where no budget had the tensor read to the end.
	NonFinite int `json:"non_finite,omitempty"`
}

// Step is one decision. Index names what an exact pass acts on, Tensor what the others act on;
// the remaining fields belong to single passes, as their documentation says.
type Step struct {
	Pass   string `json:"pass"`
	Index  string `json:"index,omitempty"`
	Tensor string `json:"tensor,omitempty"`

	Order     []int `json:"order,omitempty"`     // reorder: place i takes label Order[i]
	Flip      []int `json:"flip,omitempty"`      // signs: labels multiplied by −1, ascending
	Exponents []int `json:"exponents,omitempty"` // scale: by label

	Shift      *Shift    `json:"shift,omitempty"`
	Prune      *Prune    `json:"prune,omitempty"`
	Zeros      *Zeros    `json:"zeros,omitempty"`
	Trellis    *Trellis  `json:"trellis,omitempty"`
	Grid       *Grid     `json:"grid,omitempty"`
	Round      *Bits     `json:"round,omitempty"`
	Compensate *Feedback `json:"compensate,omitempty"`
}

// Whole reports whether the step makes a layer's values be chosen together.
func (s *Step) Whole() bool { return s.Prune != nil || s.Trellis != nil || s.Compensate != nil }

// ErrPlan is the class of errors about a plan's contents.
var ErrPlan = errors.New("invalid plan")

// Encode renders the plan as JSON with one line for each step, so that plans can be read and
// compared line by line.
func (p *Plan) Encode() ([]byte, error) {
	head := *p
	head.Steps, head.Outlook, head.Notes = nil, nil, nil
	js, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(bytes.TrimSuffix(js, []byte("\"steps\": null\n}")))
	if err := encodeLines(b, "steps", p.Steps); err != nil {
		return nil, err
	}
	if len(p.Outlook) > 0 {
		b.WriteString(",\n  ")
		if err := encodeLines(b, "outlook", p.Outlook); err != nil {
			return nil, err
		}
	}
	if len(p.Notes) > 0 {
		b.WriteString(",\n  ")
		if err := encodeLines(b, "notes", p.Notes); err != nil {
			return nil, err
		}
	}
	b.WriteString("\n}\n")
	return b.Bytes(), nil
}

func encodeLines[T any](b *bytes.Buffer, name string, list []T) error {
	fmt.Fprintf(b, "%q: [", name)
	for i, item := range list {
		js, err := json.Marshal(item)
		if err != nil {
			return err
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		b.Write(js)
	}
	if len(list) > 0 {
		b.WriteString("\n  ")
	}
	b.WriteByte(']')
	return nil
}

// DecodePlan reads a plan. Unknown fields are errors: a plan is complete or it is not this
// version's.
func DecodePlan(js []byte) (*Plan, error) {
	dec := json.NewDecoder(bytes.NewReader(js))
	dec.DisallowUnknownFields()
	var p Plan
	if err := dec.Decode(&p); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlan, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: something follows its end", ErrPlan)
	}
	if p.Version != PlanVersion {
		return nil, fmt.Errorf("%w: version %d, this program reads version %d", ErrPlan, p.Version, PlanVersion)
	}
	dropIn := true
	for i, s := range p.Steps {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%w: step %d: %w", ErrPlan, i, err)
		}
		dropIn = dropIn && (s.Shift == nil || !s.Shift.Epilogue)
	}
	if p.DropIn != dropIn {
		return nil, fmt.Errorf("%w: it says \"drop_in\": %v, and its steps say otherwise", ErrPlan, p.DropIn)
	}
	return &p, nil
}

// ReadPlan reads a plan from a file.
func ReadPlan(path string) (*Plan, error) {
	js, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := DecodePlan(js)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// check reports a step that no pass could have written.
func (s *Step) check() error {
	if s == nil {
		return errors.New("is null")
	}
	pass, ok := Lookup(s.Pass)
	switch {
	case !ok:
		return fmt.Errorf("there is no pass %q", s.Pass)
	case pass.Class == Exact && (s.Index == "" || s.Tensor != ""):
		return fmt.Errorf("%s acts on an index, and names none", s.Pass)
	case pass.Class != Exact && (s.Tensor == "" || s.Index != ""):
		return fmt.Errorf("%s acts on a tensor, and names none", s.Pass)
	}
	return nil
}

// sampleBytes of every tensor's start and end go into a model's fingerprint.
const sampleBytes = 4096

// Fingerprint tells a model from every other by its headers and samples of its data; it does not
// read the whole model.
func Fingerprint(m *weights.Model) (fp Model, err error) {
	h := sha256.New()
	infos := m.Infos()
	sort.Slice(infos, func(i, j int) bool { return infos[i].Name < infos[j].Name })
	for _, info := range infos {
		t, _ := m.Tensor(info.Name)
		err = weights.Guard(t.File, func() error {
			fmt.Fprintf(h, "%q %s %v\n", t.Name, t.DType, t.Shape)
			h.Write(t.Data[:min(len(t.Data), sampleBytes)])
			h.Write(t.Data[max(0, len(t.Data)-sampleBytes):])
			return nil
		})
		if err != nil {
			return fp, err
		}
		fp.Bytes += info.Size()
	}
	fp.Tensors = len(infos)
	fp.SHA256 = hex.EncodeToString(h.Sum(nil))
	return fp, nil
}

// CheckModel is an error where the plan was made for another model.
func (p *Plan) CheckModel(m *weights.Model) error {
	fp, err := Fingerprint(m)
	if err != nil {
		return err
	}
	if fp.SHA256 != p.Model.SHA256 {
		return fmt.Errorf("%w: it was made for another model (%d tensors, %d bytes, %.12s…) than %s (%d tensors, %d bytes, %.12s…)",
			ErrPlan, p.Model.Tensors, p.Model.Bytes, p.Model.SHA256, m.Dir, fp.Tensors, fp.Bytes, fp.SHA256)
	}
	return nil
}
