package weights_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/weights"
)

// A file of one tensor is written and opened; a folder with shards and an index opens the same way.
func ExampleOpen() {
	dir, err := os.MkdirTemp("", "model")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	head, _, err := weights.EncodeHeader([]weights.Info{{Name: "lm_head.weight", DType: weights.BF16, Shape: []int{1, 2}}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	w, err := weights.Create(filepath.Join(dir, "model.safetensors"), head, 4)
	if err != nil {
		log.Fatal(err)
	}
	w.Write([]byte{0x80, 0x3f, 0x20, 0xc0}) // 1 and -2.5
	if err := w.Close(); err != nil {
		log.Fatal(err)
	}

	m, err := weights.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	err = m.Each(func(t weights.Tensor) error {
		return weights.Guard(t.File, func() error {
			values := make([]float32, t.Len())
			format, ok := t.DType.Format()
			if !ok {
				return nil
			}
			format.Decode(values, t.Data)
			fmt.Println(t.Name, t.DType, t.Shape, values)
			return nil
		})
	})
	if err != nil {
		log.Fatal(err)
	}
	// Output: lm_head.weight BF16 [1 2] [1 -2.5]
}
