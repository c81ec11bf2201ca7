package bucket_test

import (
	"fmt"

	"github.com/lowtoggle/lowtoggle/weights/bucket"
)

// A folder of a bucket is a [weights.Store], from which weights.OpenStore opens a model. Opening the folder sends no request.
func ExampleOpen() {
	folder, err := bucket.Open("s3://models/llama/")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(folder.URL())
	_, err = bucket.Open("abfs://models/llama")
	fmt.Println(err != nil)
	// Output:
	// s3://models/llama
	// true
}
