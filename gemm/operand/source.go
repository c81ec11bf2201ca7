package operand

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/lowtoggle/lowtoggle/cost/arith"
	"github.com/lowtoggle/lowtoggle/cost/pattern"
	"github.com/lowtoggle/lowtoggle/weights"
)

// Source is the origin of an operand's values: a pattern, or tensors of a model. The zero value is no source.
type Source struct {
	Text    string          // text from which it was parsed
	Pattern pattern.Pattern // used if Path is empty
	Path    string          // path of a folder or safetensors file; empty for patterns
	Tensors string          // a name, possibly with wildcards; empty for all linear layers

	model *weights.Model // a model opened by the caller; nil: the model at Path
}

// errNoSource is the error of the zero Source.
var errNoSource = errors.New("a source of values is missing: give a pattern, PATH:TENSOR or a model")

// Parse reads a pattern or PATH:TENSOR. The path may be a URL of an object store, which Parse does not access. If the
// path does not exist, the error is an [ErrNoFile]. All other errors are about the text.
func Parse(text string) (Source, error) {
	s := Source{Text: text}
	p, wrong := pattern.Parse(text)
	if wrong == nil {
		s.Pattern = p
		return s, nil
	}
	if weights.IsURL(text) {
		return s, s.readURL()
	}
	// A colon may belong to the path. The path ends at the first colon after an existing file or folder.
	for i, c := range text {
		if c != ':' {
			continue
		}
		if _, err := os.Stat(text[:i]); err == nil {
			s.Path, s.Tensors = text[:i], text[i+1:]
			return s, s.checkTensors()
		}
	}
	if strings.ContainsAny(text, "(|") {
		return s, wrong
	}
	if file, _, tensor := strings.Cut(text, ":"); tensor && file != "" {
		return s, noFile(file)
	}
	if _, err := os.Stat(text); err == nil {
		return s, noTensorIn(text)
	}
	return s, fmt.Errorf("%w\nor a tensor, as in MODEL:NAME (MODEL: alone means all linear layers of the model)", wrong)
}

// readURL reads a source in an object store. Its path ends at the first colon after the scheme.
func (s *Source) readURL() error {
	scheme, rest, _ := strings.Cut(s.Text, "://")
	place, tensors, ok := strings.Cut(rest, ":")
	if !ok {
		return noTensorIn(s.Text)
	}
	s.Path, s.Tensors = scheme+"://"+place, tensors
	return s.checkTensors()
}

func noTensorIn(path string) error {
	return fmt.Errorf("%s: no tensor is named: write %[1]s:NAME, or %[1]s: for all linear layers", path)
}

// MustParse is [Parse] for constant texts. It panics on an error.
func MustParse(text string) Source {
	s, err := Parse(text)
	if err != nil {
		panic(err)
	}
	return s
}

// Of returns the source of all linear layers of an open model. The caller closes the model. For a nil model, Of returns
// the zero Source, which has no products.
func Of(m *weights.Model) Source {
	if m == nil {
		return Source{}
	}
	return Source{Text: m.Dir + ":", Path: m.Dir, model: m}
}

// DefaultX returns the default pattern of activations: normal(0,32) for INT8, else normal(0,1).
func DefaultX(t arith.Type) Source {
	if t == arith.INT8 {
		return MustParse("normal(0,32)")
	}
	return MustParse("normal(0,1)")
}

// DefaultW returns the default pattern of weights: normal(0,0.02), which is similar to a trained layer. For FP8 and
// INT8, whose weights are stored with a scale, it equals DefaultX.
func DefaultW(t arith.Type) Source {
	if t == arith.INT8 || t == arith.FP8 {
		return DefaultX(t)
	}
	return MustParse("normal(0,0.02)")
}

// HasShape reports whether the source has a shape: it names tensors, or is a pattern that begins with a tensor.
func (s Source) HasShape() bool {
	_, _, tensor := s.Pattern.Tensor()
	return s.Path != "" || tensor
}

// checkTensors returns an error for invalid wildcards, and for pattern steps after a tensor's name.
func (s Source) checkTensors() error {
	if name, steps, piped := strings.Cut(s.Tensors, "|"); piped {
		meant := fmt.Sprintf("tensor(%s:%s) | %s", s.Path, strings.TrimSpace(name), strings.TrimSpace(steps))
		if _, err := pattern.Parse(meant); err == nil {
			return fmt.Errorf("%s: only patterns can have steps: write %s", s.Text, meant)
		}
	}
	if _, err := path.Match(s.Tensors, ""); err != nil {
		return fmt.Errorf("%s: %q is not a valid wildcard: close each [ with a ]", s.Text, s.Tensors)
	}
	return nil
}
