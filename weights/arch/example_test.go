package arch_test

import (
	"fmt"
	"log"

	"github.com/lowtoggle/lowtoggle/weights/arch"
)

// A config.json names the family of a model.
func ExampleDetect() {
	family, err := arch.Detect([]byte(`{"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 64,
		"intermediate_size": 128, "num_attention_heads": 4, "num_hidden_layers": 2, "vocab_size": 100}`))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(family.Name)
	// Output: llama
}
