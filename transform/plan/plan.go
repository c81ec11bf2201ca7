// Package plan is the data of a conversion: the plan, its steps, the manifest of a converted folder, and the
// fingerprint of a model. It makes no decisions. It reads weights only for the samples in a fingerprint.
package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/lowtoggle/lowtoggle/cost"
	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/internal/parallel"
	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// Version is the version of the plan's format that this package writes. The package also reads version 1, in which
// the data of four passes has other names.
const Version = 2

// Plan is a list of all changes to a model, as data. Applied to the model that it was made for, it gives the same
// bytes on every machine.
type Plan struct {
	Version int    `json:"plan_version"`
	Tool    string `json:"lowtoggle"`
	// DropIn is false if only a changed runtime can use the result, or if a runtime must support another format than
	// the source's.
	DropIn bool  `json:"drop_in"`
	Model  Model `json:"model"`
	// Request is the request for this plan.
	Request Request `json:"request"`
	// Quantised are the tensors of quantised weights that are copied byte for byte.
	Quantised []quant.Copied `json:"quantised,omitempty"`
	// Kernels are the kernels that predictions assume for a model with quantised layers; see [cost.AssumedKernels].
	Kernels []string `json:"kernels,omitempty"`
	// Search is the record of the search for a budget of loss; nil without one.
	Search *Search `json:"found,omitempty"`
	// Steps are in the order of the table of passes.
	Steps []*Step `json:"steps"`
	// Predictions has a prediction for each tensor that the planner changed or skipped.
	Predictions []Prediction `json:"outlook,omitempty"`
	// Notes describe weights that did not change, and the reasons.
	Notes []string `json:"notes,omitempty"`
}

// Model identifies the model that a plan was made for.
type Model struct {
	Family  string `json:"family,omitempty"`
	Tensors int    `json:"tensors"`
	Bytes   int64  `json:"bytes"`
	// SHA256 covers the name, type and shape of every tensor, and samples of its data.
	SHA256 string `json:"sha256"`
}

// Request is the request for a plan: passes, budget, workload and so on.
type Request struct {
	Passes   []string      `json:"passes"`
	MinSNR   *float64      `json:"min_snr_db,omitempty"`
	MaxLoss  *float64      `json:"max_loss_nats,omitempty"`
	Workload cost.Workload `json:"workload"`
	Role     cost.Role     `json:"role"`
	// Hessians is the key of the calibration statistics that weighted the errors. Applying the plan requires the same
	// tokens. Absent without tokens.
	Hessians string `json:"inputs,omitempty"`
	// Device is the kind of GPU that computed calibration statistics and divergences, with the versions of its
	// libraries and kernels. Absent if the CPU computed them.
	Device string `json:"device,omitempty"`
	// Statistics is a checksum of a GPU's calibration statistics. It is absent if applying the plan does not compute
	// them again.
	Statistics string `json:"statistics,omitempty"`
	// Reference is the SHA-256 of the model that codes approximate, as in [Model]. Absent if codes approximate the
	// values of the source's codes.
	Reference string `json:"reference,omitempty"`
	Seed      uint64 `json:"seed"`
	// Format is the quantised layout of the result, in the syntax of quantise.Parse. Absent if the result has the
	// source's layout.
	Format string `json:"format,omitempty"`
	// Selection names the weights that no pass changes.
	Selection
	// KeepRouters is true if lossy passes do not change the model's routers.
	KeepRouters bool `json:"keep_routers,omitempty"`
	// SearchSeconds is the time limit of the search for finer choices, in seconds; 0: no such search.
	SearchSeconds float64 `json:"search_seconds,omitempty"`
	// Arch is the SHA-256 of the file that describes the family; absent if the family is from the catalogue.
	Arch string `json:"arch_sha256,omitempty"`
	// TrustFamily is true if the user asserted that the model's own code computes the family's function.
	TrustFamily bool `json:"trust_family,omitempty"`
}

// Prediction is the prediction for one tensor.
type Prediction struct {
	Tensor string `json:"tensor"`
	// Linear is true for tensors whose products cost energy.
	Linear bool `json:"linear"`
	// SNR is the output SNR under the plan in decibels, computed from all weights. Absent if nothing is lost, or if
	// no budget was given.
	SNR *float64 `json:"snr_db,omitempty"`
	// SampleSNR is the output SNR in decibels of a sample of a quantised weight's rows. Plans without a budget have
	// it.
	SampleSNR *float64 `json:"sample_snr_db,omitempty"`
	// SourceSNR is the output SNR in decibels of the source against the reference. With a reference, SNR is relative
	// to the reference too.
	SourceSNR *float64 `json:"source_snr_db,omitempty"`
	// Before and After are energies relative to random data of the same scale, predicted from sampled rows.
	Before *cost.Estimate `json:"before,omitempty"`
	After  *cost.Estimate `json:"after,omitempty"`
	// Missed says which part of the request did not fit the budget.
	Missed string `json:"missed,omitempty"`
	// InputSNR is the output SNR in decibels for the layer's inputs from calibration tokens; absent without tokens.
	InputSNR *float64 `json:"input_snr_db,omitempty"`
	// NonFinite counts NaN and infinite values; absent if no budget required reading the whole tensor.
	NonFinite int `json:"non_finite,omitempty"`
}

// LowestSNR returns the lowest known output SNR of the tensor in decibels; nil if none is known.
func (o *Prediction) LowestSNR() (lowest *float64) {
	if o == nil {
		return nil
	}
	for _, snr := range []*float64{o.SNR, o.SampleSNR, o.InputSNR} {
		if lowest == nil || snr != nil && *snr < *lowest {
			lowest = snr
		}
	}
	return lowest
}

// ErrInvalid is the class of errors about a plan's content.
var ErrInvalid = errors.New("invalid plan")

// NothingLeft reports whether a plan does not change a model with quantised weights.
func (p *Plan) NothingLeft() bool { return len(p.Quantised) > 0 && len(p.Steps) == 0 }

// Encode renders the plan as JSON with one line for each step, so that plans can be read and compared line by line. A
// plan of more than 4 MiB is packed: it has a summary of the steps, and the whole plan, compressed, with a checksum.
func (p *Plan) Encode() ([]byte, error) {
	plain, err := p.Plain()
	if err != nil || len(plain) <= plainBytes {
		return plain, err
	}
	return p.pack(plain)
}

// Plain is [Plan.Encode] without packing, for a plan of any length. Digests of plans are of this form.
func (p *Plan) Plain() ([]byte, error) {
	head := *p
	head.Steps, head.Predictions, head.Notes = nil, nil, nil
	js, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(bytes.TrimSuffix(js, []byte("\"steps\": null\n}")))
	if err := encodeLines(b, "steps", p.Steps); err != nil {
		return nil, err
	}
	if len(p.Predictions) > 0 {
		b.WriteString(",\n  ")
		if err := encodeLines(b, "outlook", p.Predictions); err != nil {
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

// linesAtOnce is the number of lines of a list that are encoded in parallel.
const linesAtOnce = 1024

// encodeLines renders a list with one line for each item. It uses all processors.
func encodeLines[T any](b *bytes.Buffer, name string, list []T) error {
	fmt.Fprintf(b, "%q: [", name)
	separator := "\n    "
	for items := range slices.Chunk(list, linesAtOnce) {
		lines, errs := make([][]byte, len(items)), make([]error, len(items))
		parallel.Do(len(items), 0, func(i int) { lines[i], errs[i] = json.Marshal(items[i]) })
		for i, js := range lines {
			if errs[i] != nil {
				return errs[i]
			}
			b.WriteString(separator)
			b.Write(js)
			separator = ",\n    "
		}
	}
	if len(list) > 0 {
		b.WriteString("\n  ")
	}
	b.WriteByte(']')
	return nil
}

// Decode decodes a plan of version 1, 2 or 3, packed or not. Unknown fields are errors, because they belong to
// another version. The passes check the data of the steps.
func Decode(js []byte) (*Plan, error) {
	var v struct {
		Version int `json:"plan_version"`
	}
	if json.Unmarshal(js, &v) == nil && v.Version == packedVersion {
		p, err := unpack(js)
		if err != nil && !errors.Is(err, ErrInvalid) {
			err = fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		return p, err
	}
	return decodePlain(js)
}

func decodePlain(js []byte) (*Plan, error) {
	dec := json.NewDecoder(bytes.NewReader(js))
	dec.DisallowUnknownFields()
	var p Plan
	switch err := dec.Decode(&p); {
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return nil, fmt.Errorf("%w: the JSON ends too early: copy the file again", ErrInvalid)
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, fmt.Errorf("%w: there is more text after the end of the plan's JSON: remove this text, or copy the file again", ErrInvalid)
	}
	if p.Version == 0 {
		return nil, fmt.Errorf("%w: it has no plan_version: give a file that lowtoggle plan has written", ErrInvalid)
	}
	if p.Version < 1 || p.Version > Version {
		return nil, fmt.Errorf("%w: the plan has version %d, and this program reads versions 1 to %d: use the version of lowtoggle that wrote the plan", ErrInvalid, p.Version, packedVersion)
	}
	for i, s := range p.Steps {
		if err := s.check(); err != nil {
			return nil, fmt.Errorf("%w: step %d: %w", ErrInvalid, i, err)
		}
	}
	p.Version = Version // the steps have the form of this version
	return &p, nil
}

// Read reads a plan from a file.
func Read(path string) (*Plan, error) {
	js, err := bounded.ReadFile(path, bounded.Plan)
	if err != nil {
		return nil, err
	}
	p, err := Decode(js)
	if err != nil {
		return nil, weights.FileErrorf(path, "%w", err)
	}
	return p, nil
}
