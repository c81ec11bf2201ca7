package program

import (
	"crypto/sha256"
	"encoding/json"
	"sync"

	"github.com/lowtoggle/lowtoggle/transform/plan"
)

// resultBytes is the largest memory of Results in bytes, for any size of model. Widen allows more.
const resultBytes = 256 << 20

// Results caches the last joint choice of each weight. A search evaluates whole models in which most layers are equal
// to those of the previous trial, and then applies the plan. A nil *Results caches nothing.
type Results struct {
	mu          sync.Mutex
	room, bytes int // room of 0 stands for resultBytes
	data        map[resultKey][]byte
	last        map[string]resultKey // by weight
}

// Widen raises the memory limit to room, in bytes.
func (r *Results) Widen(room int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.room = room
}

// Clear removes all results.
func (r *Results) Clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data, r.last, r.bytes = nil, nil, 0
}

type resultKey [sha256.Size]byte

// keyOf returns the key of a program and its steps. The steps are in the order of the passes.
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

func (r *Results) put(weight string, k resultKey, data []byte) {
	if r == nil || data == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.data[k] != nil {
		return
	}
	if r.data == nil {
		r.data, r.last = map[resultKey][]byte{}, map[string]resultKey{}
	}
	if old, ok := r.last[weight]; ok {
		r.bytes -= len(r.data[old])
		delete(r.data, old)
		delete(r.last, weight)
	}
	if r.bytes+len(data) > max(r.room, resultBytes) {
		return // models are computed in one order of layers, so the first layers are the most useful ones
	}
	r.data[k], r.last[weight] = data, k
	r.bytes += len(data)
}
