package synth_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/lowtoggle/lowtoggle/weights"
	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// A small random Llama is written, and opened like any other model.
func ExampleFolder() {
	tmp, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(tmp)
	config, err := synth.Config("llama-tiny")
	if err != nil {
		log.Fatal(err)
	}
	dir := filepath.Join(tmp, "model")
	if err := synth.Folder(context.Background(), config, dir, synth.Options{Seed: 1}); err != nil {
		log.Fatal(err)
	}
	m, err := weights.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(len(m.Infos()) > 0)
	// Output: true
}
