package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/lowtoggle/lowtoggle/weights/synth"
)

// goBlock is a block of Go on a page.
var goBlock = regexp.MustCompile("(?s)\n```go\n(.*?)```\n")

// TestLibraryPage compiles the unchanged program of docs/library.md and runs it on a small model. The program converts and verifies.
func TestLibraryPage(t *testing.T) {
	if testing.Short() {
		t.Skip("links a program")
	}
	dir := t.TempDir()
	build := []string{"build", "-ldflags=-s -w", "-o", filepath.Join(dir, "program")}
	for i, block := range goBlock.FindAllStringSubmatch(readText(t, filepath.Join("docs", "library.md")), -1) {
		file := filepath.Join(dir, fmt.Sprintf("block%d.go", i))
		if err := os.WriteFile(file, []byte(block[1]), 0o666); err != nil {
			t.Fatal(err)
		}
		build = append(build, file)
	}
	if out, err := exec.Command("go", build...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	config, err := synth.Config("llama-tiny")
	if err != nil {
		t.Fatal(err)
	}
	if err := synth.Folder(t.Context(), config, filepath.Join(dir, "MODEL"), synth.Options{Seed: 1}); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "program"))
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if want := regexp.MustCompile(`^energy of the linear layers, predicted: [+-]\d+\.\d %\nlowest output SNR of a layer: \d+\.\d dB\nverified: \d+ lossy and \d+ identical tensors\n$`); err != nil || !want.Match(out) {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "OUT", "model.safetensors")); err != nil {
		t.Error(err)
	}
}
