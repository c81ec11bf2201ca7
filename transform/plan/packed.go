package plan

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"

	"github.com/lowtoggle/lowtoggle/internal/bounded"
)

// packedVersion is the version of a file with a packed plan. The packed content is a plan of [Version].
const packedVersion = 3

// plainBytes is the largest plan, in bytes, that [Plan.Encode] writes with a line for each step.
const plainBytes = 4 << 20

// Packed is the stored form of a long plan: a summary for readers, and the whole plan, compressed.
type Packed struct {
	Version int     `json:"plan_version"`
	Tool    string  `json:"lowtoggle"`
	DropIn  bool    `json:"drop_in"`
	Model   Model   `json:"model"`
	Request Request `json:"request"`
	// Kinds summarise the steps.
	Kinds []Kind   `json:"kinds"`
	Notes []string `json:"notes,omitempty"`
	// SHA256 and Bytes describe the plan in Gzip, with a line for each step. Gzip is the compressed plan in Base64.
	// Only Gzip is applied, and the fields before it must agree with its content.
	SHA256 string `json:"plan_sha256"`
	Bytes  int    `json:"plan_bytes"`
	Gzip   []byte `json:"plan_gzip,omitempty"`
}

// Kind summarises the steps of one pass on tensors or indices whose names differ only in numbers.
type Kind struct {
	Pass  string `json:"pass"`
	On    string `json:"on"` // name with a star for each number
	Steps int    `json:"steps"`
	// Data is the data of these steps. It is absent if the steps have different data, or if the data is long.
	Data json.RawMessage `json:"data,omitempty"`
}

// longestData is the largest length, in bytes, of the data that a [Kind] shows.
const longestData = 200

var numbers = regexp.MustCompile(`[0-9]+`)

// kindsOf returns the kinds of steps, in the order of their first step.
func kindsOf(steps []*Step) (list []Kind, err error) {
	type key struct{ pass, on string }
	at := map[key]int{}
	for _, s := range steps {
		on := numbers.ReplaceAllString(s.Index+s.Tensor, "*")
		data, err := json.Marshal(s.Data)
		if err != nil {
			return nil, err
		}
		if len(data) > longestData {
			data = nil
		}
		i, known := at[key{s.Pass, on}]
		if !known {
			i = len(list)
			at[key{s.Pass, on}] = i
			list = append(list, Kind{Pass: s.Pass, On: on, Data: data})
		}
		if list[i].Steps++; !bytes.Equal(list[i].Data, data) {
			list[i].Data = nil
		}
	}
	return list, nil
}

// packedHead returns a packed plan without its compressed content. plain is that content before compression.
func (p *Plan) packedHead(plain []byte) (h Packed, err error) {
	sum := sha256.Sum256(plain)
	h = Packed{Version: packedVersion, Tool: p.Tool, DropIn: p.DropIn, Model: p.Model, Request: p.Request, Notes: p.Notes,
		SHA256: hex.EncodeToString(sum[:]), Bytes: len(plain)}
	h.Kinds, err = kindsOf(p.Steps)
	return h, err
}

// pack renders a plan with a summary instead of its steps. plain is the plan's plain form.
func (p *Plan) pack(plain []byte) ([]byte, error) {
	h, err := p.packedHead(plain)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid, so there is no error
	if _, err := z.Write(plain); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	h.Gzip = b.Bytes()
	js, err := json.MarshalIndent(h, "", "  ")
	return append(js, '\n'), err
}

var errPackedAltered = errors.New("its fields disagree with the plan in plan_gzip: unpack the plan before you edit it (see docs/scale.md)")

// unpack reads a packed plan.
func unpack(js []byte) (*Plan, error) {
	var h Packed
	dec := json.NewDecoder(bytes.NewReader(js))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h); err != nil {
		return nil, err
	}
	if h.Bytes < 0 || h.Bytes > bounded.Plan {
		return nil, fmt.Errorf("a packed plan of %d bytes is too large: at most %d are read", h.Bytes, bounded.Plan)
	}
	z, err := gzip.NewReader(bytes.NewReader(h.Gzip))
	if err != nil {
		return nil, fmt.Errorf("unpacking plan_gzip: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(z, int64(h.Bytes)+1))
	if err != nil {
		return nil, fmt.Errorf("unpacking plan_gzip: %w", err)
	}
	if sum := sha256.Sum256(plain); len(plain) != h.Bytes || hex.EncodeToString(sum[:]) != h.SHA256 {
		return nil, fmt.Errorf("the packed plan has another checksum than plan_sha256: copy the file again")
	}
	p, err := decodePlain(plain)
	if err != nil {
		return nil, err
	}
	want, err := p.packedHead(plain)
	if err != nil {
		return nil, err
	}
	h.Gzip = nil
	a, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	if b, err := json.Marshal(want); err != nil || !bytes.Equal(a, b) {
		return nil, errors.Join(err, errPackedAltered)
	}
	return p, nil
}
