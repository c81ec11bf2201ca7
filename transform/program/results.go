package program

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// resultBytes bounds what Results keep, whatever the model's size.
const resultBytes = 256 << 20

// Results keep joint choices that will be asked for again: a search runs whole models of which most layers are as
// in the run before, and the plan that it takes is applied. A nil Results keeps nothing.
type Results struct {
	mu    sync.Mutex
	bytes int
	data  map[resultKey][]byte
}

type resultKey [sha256.Size]byte

// keyOf a program that carries out steps, in the table's order.
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
		return // whole models are made layer by layer, in one order: what came first is of more use
	}
	r.data[k] = data
	r.bytes += len(data)
}
