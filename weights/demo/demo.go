// Package demo embeds a small trained model in the binary, for machines without a model and without a network. README.md says how
// the model was made.
package demo

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
)

//go:embed model
var embedded embed.FS

// FS returns the model's Hugging Face folder: config.json, two safetensors shards with their index,
// tokens.safetensors and reference.json.
func FS() fs.FS {
	model, err := fs.Sub(embedded, "model")
	if err != nil {
		panic(err) // the name is a constant
	}
	return model
}

// Write copies the model's folder to dir. It returns an error if dir exists or its parent does not. After an error it removes
// the files that it wrote.
func Write(dir string) error {
	if err := os.Mkdir(dir, 0o777); err != nil {
		return fmt.Errorf("demo model: %w", err)
	}
	if err := os.CopyFS(dir, FS()); err != nil {
		os.RemoveAll(dir)
		return fmt.Errorf("demo model: %w", err)
	}
	return nil
}
