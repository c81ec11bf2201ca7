// Command lowtoggle converts model weights so that the GPU's wires toggle less when it multiplies
// by them.
package main

import (
	"os"

	"github.com/lowtoggle/lowtoggle/cli"
)

func main() { os.Exit(cli.Main(cli.Interrupts(), os.Args, os.Stdout, os.Stderr)) }
