package exit

import (
	"bytes"
	"encoding/json"
	"io"
)

// Hold buffers the command's output until [Output.Release], which can add an error to a JSON document.
func (o *Output) Hold() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.held = &bytes.Buffer{}
}

// Release writes the buffered output, with p added to the document. If the command wrote no document, p is written
// alone. With nil, the document does not change. Release returns the error of writing. Later output is discarded,
// because an interrupted command may still write. Without [Output.Hold], Release does nothing.
func (o *Output) Release(p *Problem) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.held == nil {
		return o.err
	}
	document := o.held.Bytes()
	o.held = nil
	if p != nil {
		document = withProblem(document, p)
	}
	if len(document) > 0 {
		_, o.err = o.Writer.Write(document)
	}
	o.Writer = io.Discard
	return o.err
}

// withProblem adds a problem to a document, which is a JSON object.
func withProblem(document []byte, p *Problem) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	_ = enc.Encode(struct {
		Error *Problem `json:"error"`
	}{p}) // marshalling text and numbers cannot fail
	alone := b.Bytes()
	body, ok := bytes.CutSuffix(bytes.TrimSpace(document), []byte("}"))
	body = bytes.TrimSpace(body)
	switch {
	case len(document) == 0:
		return alone
	case !ok || !json.Valid(document): // such as a help text
		return document
	case string(body) == "{":
		return alone
	}
	return append(append(bytes.Clone(body), ','), bytes.TrimPrefix(alone, []byte("{"))...)
}
