package quant_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/demo"
	"github.com/lowtoggle/lowtoggle/weights/quant"
)

// The largest weight of the demo model is read row by row. No other tensor is read.
func ExampleGroup() {
	tmp, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "demo")
	if err := demo.Write(dir); err != nil {
		log.Fatal(err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()

	set := quant.Group(m, nil)
	largest := set.All[0]
	for _, w := range set.All {
		if w.Rows*w.Cols > largest.Rows*largest.Cols {
			largest = w
		}
	}
	format, _ := largest.DType.Format()
	zeros := 0
	err = weights.Guard(m.Dir, func() error {
		for row := range largest.Rows {
			data := largest.ReadRows(nil, row, 1)
			for i := range largest.Cols {
				if format.Value(format.Elem(data, i)) == 0 {
					zeros++
				}
			}
		}
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s: %d × %d %s in %d tensor, %d zeros\n",
		largest.Name, largest.Rows, largest.Cols, largest.DType, len(largest.Parts), zeros)
	// Output: model.layers.0.mlp.down_proj.weight: 128 × 352 BF16 in 1 tensor, 0 zeros
}
