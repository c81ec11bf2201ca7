package divergence_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/lowtoggle/lowtoggle/gemm/forward"
	"github.com/lowtoggle/lowtoggle/gemm/sgemm"
)

// counter counts products.
type counter struct {
	forward.CPU
	products int
}

func (c *counter) Mul(ctx context.Context, y, x, w sgemm.Matrix, transposed bool) error {
	c.products++
	return c.CPU.Mul(ctx, y, x, w, transposed)
}

// TestBlocksOfTheCallBeforeAreNotComputedAgain evaluates several models with one evaluator, and compares every result with that
// of a new evaluator.
func TestBlocksOfTheCallBeforeAreNotComputedAgain(t *testing.T) {
	m := trained(t, 2, 20)
	count := &counter{}
	m.Products = count
	layers, coarse := m.Layers(), grid(m.stored, 1./16)
	perBlock := 0 // products in a block and in the head
	var in []string
	for block := range m.Blocks() {
		perBlock = 0
		for _, l := range layers {
			if l.Block == block {
				perBlock++
				if len(in) == block {
					in = append(in, l.Tensor)
				}
			}
		}
	}
	last := m.Blocks() - 1
	const norm, embedding = "model.norm.weight", "model.embed_tokens.weight"
	e := m.evaluator(t)
	for i, call := range []struct {
		changed []string
		blocks  int // computed; -1: the call fails
	}{
		{[]string{in[1]}, last + 1},
		{[]string{in[1]}, 1},            // the last one, whose state is not kept
		{[]string{in[1], norm}, 1},      // behind the blocks
		{[]string{in[1], in[last]}, 1},  // the last one differs
		{[]string{in[last]}, last},      // the second one is as it was
		{nil, 1},                        // the model itself
		{[]string{embedding}, last + 1}, // nothing is shared
		{[]string{embedding, in[0]}, last + 1},
		{[]string{embedding, in[0]}, -1},
		{[]string{embedding, in[0]}, last + 1}, // a call that failed leaves nothing
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			changed := only(coarse, call.changed...)
			asked := map[string]int{}
			counting := source(func(ctx context.Context, name string) ([]float32, error) {
				if asked[name]++; call.blocks < 0 && name == in[last] {
					return nil, errBroken
				}
				return changed.Tensor(ctx, name)
			})
			count.products = 0
			got, loss, interval, err := e.WholeModel(t.Context(), counting)
			if call.blocks < 0 {
				if !errors.Is(err, errBroken) {
					t.Errorf("error %v, want the one of the weights", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := call.blocks*perBlock + 1; count.products != want {
				t.Errorf("%d products, want %d in %d blocks and the head", count.products, want, call.blocks)
			}
			for name, n := range asked {
				if n > 1 {
					t.Errorf("%s was asked for %d times", name, n)
				}
			}
			type result struct {
				divergence, loss float64
				interval         [2]float64
			}
			alone, aloneLoss, aloneInterval, err := m.evaluator(t).WholeModel(t.Context(), changed)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := (result{got, loss, interval}), (result{alone, aloneLoss, aloneInterval}); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		})
	}
}

// TestAttentionIsComputedOnceForTheLayersOfAnFFN counts the products of two layers in the last block.
func TestAttentionIsComputedOnceForTheLayersOfAnFFN(t *testing.T) {
	m := trained(t, 1, 10)
	count := &counter{}
	m.Products = count
	e := m.evaluator(t)
	const gate, down = "model.layers.%d.mlp.gate_proj.weight", "model.layers.%d.mlp.down_proj.weight"
	last := m.Blocks() - 1
	count.products = 0
	got := perLayer(t, e, nil, only(grid(m.stored, 1./16), fmt.Sprintf(gate, last), fmt.Sprintf(down, last)))
	const attention, ffn, head = 4, 3, 1
	if want := attention + 2*(ffn+head); len(got) != 2 || count.products != want {
		t.Errorf("%d layers in %d products, want 2 in %d", len(got), count.products, want)
	}
}
