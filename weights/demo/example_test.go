package demo_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/demo"
)

// The embedded model is written to a folder, and opened like any other.
func ExampleWrite() {
	tmp, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "model")
	if err := demo.Write(dir); err != nil {
		log.Fatal(err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(len(m.Infos()), "tensors")
	// Output: 39 tensors
}
