package program

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// resultBytes bounds the memory of Results for any size of model.
const resultBytes = 256 << 20

// Results caches joint choices. A search runs whole models in which most layers are the same as in the run before, and
// the plan that it finds is then applied. A nil *Results keeps nothing.
type Results struct {
	mu    sync.Mutex
	bytes int
	data  map[resultKey][]byte
}

type resultKey [sha256.Size]byte

// keyOf returns the key of a program and its steps, which are in the order of the passes.
func keyOf(p *Program, steps []*plan.Step) (k resultKey, err error) {
	js, err := json.Marshal(struct {
		Name     string
		Row, Col AxisMap
		Steps    []*plan.Step
	}{p.Source.Name, p.Row, p.Col, steps})
	return sha256.Sum256(js), err
}

func (r *Results) get(k resultKey) []byte {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.data[k]
}

func (r *Results) put(k resultKey, data []byte) {
	if r == nil || len(data) > resultBytes {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.data == nil {
		r.data = map[resultKey][]byte{}
	}
	if r.data[k] != nil {
		return
	}
	if r.bytes+len(data) > resultBytes {
		return // whole models are computed in one order of layers: the layers kept first are the most useful
	}
	r.data[k] = data
	r.bytes += len(data)
}
