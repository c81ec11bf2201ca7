package plan

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
	"github.com/lowtoggle/lowtoggle/weights"
)

// PartialVersion is the version of the format of a [Partial].
const PartialVersion = 1

// Partial is one part of a plan: the decisions about some of a model's layers. All parts together make a [Plan].
type Partial struct {
	Version int    `json:"plan_part_version"`
	Tool    string `json:"lowtoggle"`
	Number  int    `json:"part"` // from 1
	Of      int    `json:"parts"`
	Model   Model  `json:"model"`
	// Options is the SHA-256 of all options of the plan. It must be equal in all parts.
	Options string `json:"options_sha256"`
	// Whole are the steps of the passes that plan the whole model. Every part plans these steps. Notes are the notes
	// of these passes.
	Whole []*Step  `json:"whole,omitempty"`
	Notes []string `json:"notes,omitempty"`
	// Layers are the decisions about the layers of this part.
	Layers []Decision `json:"layers"`
}

// Decision is the decision about one layer.
type Decision struct {
	Prediction Prediction `json:"outlook"`
	Steps      []*Step    `json:"steps,omitempty"`
}

// Encode renders the part as JSON with one line for each layer.
func (p *Partial) Encode() ([]byte, error) {
	head := *p
	head.Layers = nil
	js, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(bytes.TrimSuffix(js, []byte("\"layers\": null\n}")))
	err = encodeLines(b, "layers", p.Layers)
	b.WriteString("\n}\n")
	return b.Bytes(), err
}

// ReadPartial reads a part from a file.
func ReadPartial(path string) (*Partial, error) {
	js, err := bounded.ReadFile(path, bounded.Plan)
	if err != nil {
		return nil, err
	}
	return DecodePartial(path, js)
}

// DecodePartial decodes a part. path is the file's name for messages.
func DecodePartial(path string, js []byte) (*Partial, error) {
	p, err := decodePartial(js)
	if err != nil {
		return nil, weights.FileErrorf(path, "%w: %w", ErrInvalid, err)
	}
	return p, nil
}

func decodePartial(js []byte) (*Partial, error) {
	var p Partial
	if err := json.Unmarshal(js, &p); err != nil {
		return nil, err
	}
	if p.Version != PartialVersion {
		return nil, fmt.Errorf("is not a part of a plan, or has another version (%d, not %d): make the part again with this program", p.Version, PartialVersion)
	}
	for _, s := range p.Whole {
		if err := s.check(); err != nil {
			return nil, err
		}
	}
	for _, d := range p.Layers {
		for _, s := range d.Steps {
			if err := s.check(); err != nil {
				return nil, fmt.Errorf("layer %q: %w", d.Prediction.Tensor, err)
			}
		}
	}
	return &p, nil
}
